// Facts of a head with its loss (moe.linear_cross_entropy), beside its traits.
#ifndef HECATE_IR_OPS_HEAD_LOSS_H
#define HECATE_IR_OPS_HEAD_LOSS_H

#include "ir/core/op.h"

// moe.linear_cross_entropy, its gradient, or a call of one of them.
bool hec_is_head_loss(MlirOperation op);

// The groups of dimensions of its GEMM: those of tokens, and the rows and columns of w.
struct hec_head {
    struct hec_tensor m, n, k;
};
struct hec_head hec_head_of(MlirOperation op);

// Floating-point operations of the GEMMs that the model means: one forward, one for each gradient backward. Logits that
// backward recomputes count nothing.
double hec_head_flops(MlirOperation op);

#endif
