// What @backward computes again in place of fetching it.
#ifndef HECATE_PASSES_AGAIN_H
#define HECATE_PASSES_AGAIN_H

#include "ir/ir.h"

// Computes in @backward what it fetches, where parallel.recompute of the module says so and @backward can have the operands
// without further slots; slots that nothing fetches any more go. Same operations, same operands: the same bits.
void hec_compute_again(MlirOperation module);

#endif
