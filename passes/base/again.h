// Operations that @backward recomputes in place of fetching their results.
#ifndef HECATE_PASSES_BASE_AGAIN_H
#define HECATE_PASSES_BASE_AGAIN_H

#include "ir/core/ir.h"

enum hec_again { HEC_AGAIN_NONE, HEC_AGAIN_ELEMENTWISE, HEC_AGAIN_CHEAP, HEC_AGAIN_ALL };

// What parallel.recompute says of an operation: of the innermost of its blocks that has its own, or of all. Of text
// that comes from elsewhere, what it does not know is the default.
enum hec_again hec_again_of(MlirOperation op);

// Computes in @backward what it fetches, where parallel.recompute of the module says so and @backward can have the
// operands without further slots; slots that nothing fetches any more go. Same operations, same operands: the same
// bits.
void hec_compute_again(MlirOperation module);

#endif
