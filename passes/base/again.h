// Operations that @backward recomputes in place of fetching their results.
#ifndef HECATE_PASSES_BASE_AGAIN_H
#define HECATE_PASSES_BASE_AGAIN_H

#include "ir/core/ir.h"

enum hec_again { HEC_AGAIN_NONE, HEC_AGAIN_ELEMENTWISE, HEC_AGAIN_CHEAP, HEC_AGAIN_ALL };

// The value of parallel.recompute for an operation: that of the innermost enclosing block that has its own, or else the
// module's. An unknown value, possible in IR read as text, counts as the default.
enum hec_again hec_again_of(MlirOperation op);

// Recomputes in @backward the values that it fetches, where parallel.recompute of the module asks for that and
// @backward can have the operands without further slots. Removes slots that nothing fetches any more. The same
// operations have the same operands: the same bits.
void hec_compute_again(MlirOperation module);

#endif
