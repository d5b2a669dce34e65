// Building moe.fused, whose operands are in groups.
#ifndef HECATE_IR_OPS_FUSED_H
#define HECATE_IR_OPS_FUSED_H

#include "ir/ir.h"

// Runs of neighbouring inputs of one type that moe.fused can have. IRDL wants the operands of a group
// to be of one type; the attribute operandSegmentSizes says how long each of the groups is.
enum { HEC_FUSED_RUNS = 24 };

// How many runs `inputs` form; with more than HEC_FUSED_RUNS they cannot be fused in this order.
int hec_fused_runs(int inputs, const MlirValue *input);

// Builds a moe.fused whose region has one empty block with an argument for each input (named like
// it); the caller fills it and ends it with vector.yield. All `outputs` have one type.
MlirOperation hec_build_fused(struct hec_builder *b, int inputs, const MlirValue *input,
                              int outputs, const MlirType *type, MlirBlock *body);

#endif
