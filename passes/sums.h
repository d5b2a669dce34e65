// Sums that a kernel makes: %b = moe.contract(...); %r = moe.add(%a, %b) needs no loop for the addition
// where the kernel adds to %a.
#ifndef HECATE_PASSES_SUMS_H
#define HECATE_PASSES_SUMS_H

#include "ir/core/op.h"

// The operand of `op`, 0 or 1, whose kernel can add to the other operand, which nothing else needs from
// there on; -1 where there is none, or where `op` is no moe.add. select-kernels makes each of them one
// call, so that fuse passes leave them alone.
int hec_sum_operand(MlirOperation op);

#endif
