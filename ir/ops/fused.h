// Building moe.fused, whose operands are in groups.
#ifndef HECATE_IR_OPS_FUSED_H
#define HECATE_IR_OPS_FUSED_H

#include "ir/ir.h"

// Runs of neighbouring inputs of one type that moe.fused can have. IRDL wants the operands of a group
// to be of one type; the attribute operandSegmentSizes says how long each of the groups is.
enum { HEC_FUSED_RUNS = 24 };

// Builds a moe.fused whose region has one empty block with an argument for each input (named like
// it); the caller fills it and ends it with vector.yield. All `outputs` have one type.
MlirOperation hec_build_fused(struct hec_builder *b, int inputs, const MlirValue *input,
                              int outputs, const MlirType *type, MlirBlock *body);

// ---- epilogues (epilogue.c)
//
// A moe.fused with `epilogue = true` stands right behind a product (NN or NT) whose result it reads.
// It computes the same as without: but block by block of that result, each as soon as it is
// finished. So what the product reads is read until the epilogue has ended.

// Whether `op`, elementwise or moe.fused, could be an epilogue of `product` where it stood behind it.
bool hec_fits_epilogue(MlirOperation product, MlirOperation op);
// The product of an epilogue, the epilogue of a product; null for an operation that is, or has, none.
MlirOperation hec_epilogue_product(MlirOperation op);
MlirOperation hec_epilogue_of(MlirOperation product);
// Reports a moe.fused that says it is an epilogue and cannot be.
bool hec_verify_epilogue(MlirOperation op);

#endif
