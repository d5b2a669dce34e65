// Elementwise operations, loops of them, sums and copies.
#include <math.h>

#include "tests/interpret/machine.h"

static double sigmoid(double a) {
    return 1 / (1 + exp(-a));
}

static double gelu_inner(double a) {
    return sqrt(2 / M_PI) * (a + 0.044715 * a * a * a);
}

static double gelu_slope(double a) {
    const double t = tanh(gelu_inner(a));
    const double inner = sqrt(2 / M_PI) * (1 + 3 * 0.044715 * a * a);
    return 0.5 * (1 + t) + 0.5 * a * (1 - t * t) * inner;
}

static double gelu_erf_slope(double a) {
    return 0.5 * (1 + erf(a / M_SQRT2)) + a * exp(-a * a / 2) / sqrt(2 * M_PI);
}

static double of_one(enum hec_op id, double a) {
    switch (id) {
    case HEC_OP_neg:
        return -a;
    case HEC_OP_silu:
        return a * sigmoid(a);
    case HEC_OP_gelu:
        return 0.5 * a * (1 + tanh(gelu_inner(a)));
    case HEC_OP_gelu_erf:
        return 0.5 * a * (1 + erf(a / M_SQRT2));
    case HEC_OP_relu:
        return a > 0 ? a : isnan(a) ? a : 0;
    case HEC_OP_sigmoid:
        return sigmoid(a);
    case HEC_OP_tanh:
        return tanh(a);
    case HEC_OP_exp:
        return exp(a);
    case HEC_OP_sqrt:
        return sqrt(a);
    default:
        return NAN;
    }
}

static double select_less(double a, double b, double x) {
    return a < b ? x : a == b ? x / 2 : a > b ? 0 : NAN;
}

// `a` is dr for gradients.
static double of_two(enum hec_op id, double a, double b) {
    switch (id) {
    case HEC_OP_add:
        return a + b;
    case HEC_OP_sub:
        return a - b;
    case HEC_OP_mul:
        return a * b;
    case HEC_OP_div:
        return a / b;
    case HEC_OP_minimum:
        return a < b ? a : b;
    case HEC_OP_maximum:
        return a > b ? a : b;
    case HEC_OP_silu_grad:
        return a * sigmoid(b) * (1 + b * (1 - sigmoid(b)));
    case HEC_OP_gelu_grad:
        return a * gelu_slope(b);
    case HEC_OP_gelu_erf_grad:
        return a * gelu_erf_slope(b);
    case HEC_OP_relu_grad:
        return b > 0 ? a : isnan(b) ? b : 0;
    case HEC_OP_sigmoid_grad:
        return a * sigmoid(b) * (1 - sigmoid(b));
    case HEC_OP_tanh_grad:
        return a * (1 - tanh(b) * tanh(b));
    default:
        return NAN;
    }
}

void run_elementwise(struct machine *m, MlirOperation op) {
    enum { OPERANDS = 3 };
    const int operands = (int)mlirOperationGetNumOperands(op);
    const struct tensor *t[OPERANDS];
    int64_t stride[OPERANDS][HEC_IR_RANK_MAX];
    struct tensor *r = out(m, op, 0);
    for (int i = 0; i < operands; i++) {
        t[i] = in(m, op, i);
        strides_of(&t[i]->shape, &r->shape, stride[i]);
    }
    for (int64_t e = 0; e < r->count; e++) {
        double x[OPERANDS];
        for (int i = 0; i < operands; i++) x[i] = t[i]->at[offset_of(&r->shape, stride[i], e)];
        r->at[e] = operands == 1   ? of_one(hec_op_of(op), x[0])
                   : operands == 2 ? of_two(hec_op_of(op), x[0], x[1])
                                   : select_less(x[0], x[1], x[2]);
    }
}

void run_fused(struct machine *m, MlirOperation op) {
    const MlirBlock block = mlirRegionGetFirstBlock(mlirOperationGetRegion(op, 0));
    for (int i = 0; i < mlirOperationGetNumOperands(op); i++) {
        bind(m, mlirBlockGetArgument(block, i), in(m, op, i));
    }
    const MlirOperation yield = run_block(m, block);
    for (int i = 0; i < mlirOperationGetNumResults(op); i++) {
        bind(m, hec_result(op, i), in(m, yield, i));
    }
}

void run_fill(struct machine *m, MlirOperation op) {
    fill(out(m, op, 0), hec_get_float(op, "value"));
}

void run_sum(struct machine *m, MlirOperation op) {
    const struct tensor *a = in(m, op, 0);
    struct tensor *r = out(m, op, 0);
    int64_t stride[HEC_IR_RANK_MAX];
    strides_of(&r->shape, &a->shape, stride);
    fill(r, 0);
    for (int64_t i = 0; i < a->count; i++) r->at[offset_of(&a->shape, stride, i)] += a->at[i];
}

void run_copy(struct machine *m, MlirOperation op) {
    bind(m, hec_result(op, 0), in(m, op, 0));
}
