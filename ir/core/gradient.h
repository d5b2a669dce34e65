// Services of the pass that differentiates (passes/differentiate.c) for gradient rules (ir/ops/).
#ifndef HECATE_IR_CORE_GRADIENT_H
#define HECATE_IR_CORE_GRADIENT_H

#include "ir/core/op.h"

struct hec_gradient {
    struct hec_builder *builder; // Inserts at the current point of the backward function.

    // The gradient of forward value `v`, a result of the operation; a tensor of zeros when nothing
    // reached it and `or_zero`, else a null value.
    MlirValue (*of)(struct hec_gradient *g, MlirValue v, bool or_zero);
    // The value that stands for forward value `v` in the backward function: known there, cloned
    // (parameters, constants) or stashed and fetched.
    MlirValue (*primal)(struct hec_gradient *g, MlirValue v);
    // Adds `d` to the gradient of forward value `v`. `d` has the type of `v`.
    void (*add)(struct hec_gradient *g, MlirValue v, MlirValue d);
    // False for values without a gradient (ids, constants): rules may skip the work.
    bool (*wants)(struct hec_gradient *g, MlirValue v);
};

#endif
