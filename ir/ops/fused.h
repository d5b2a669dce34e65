// Building moe.fused, whose operands are in groups.
#ifndef HECATE_IR_OPS_FUSED_H
#define HECATE_IR_OPS_FUSED_H

#include "ir/core/kernel.h"

// Builds a moe.fused whose region has one empty block with an argument for each input (named like
// it); the caller fills it and ends it with vector.yield. All `outputs` have one type.
MlirOperation hec_build_fused(struct hec_builder *b, int inputs, const MlirValue *input,
                              int outputs, const MlirType *type, MlirBlock *body);

// A region of elementwise operations with its inputs and results: of a moe.fused, or the epilogue of an
// hk.call, whose first input is the call's first result.
struct hec_fused {
    MlirBlock body; // Null: `op` is neither.
    int inputs, outputs;
    MlirValue input[HEC_FUSED_VALUES], output[HEC_FUSED_VALUES];
};
struct hec_fused hec_fused_of(MlirOperation op);
// Reports its faults.
bool hec_fused_verify(MlirOperation op, const struct hec_fused *fused);

// ---- epilogues (epilogue.c)
//
// A moe.fused with `epilogue = true` stands right behind a GEMM (NN or NT) whose result it reads.
// It computes the same as without: but block by block of that result, each as soon as it is
// finished. select-kernels makes it the region of the GEMM's call.

// Whether `op`, elementwise or moe.fused, could be an epilogue of `product` where it stood behind it.
bool hec_fits_epilogue(MlirOperation product, MlirOperation op);
// The GEMM of an epilogue, the epilogue of a GEMM; null for an operation that is, or has, none.
MlirOperation hec_epilogue_product(MlirOperation op);
MlirOperation hec_epilogue_of(MlirOperation product);
// Reports a moe.fused that says it is an epilogue and cannot be.
bool hec_verify_epilogue(MlirOperation op);
// The same for the region of an hk.call, where it has one.
bool hec_verify_block(MlirOperation call);

#endif
