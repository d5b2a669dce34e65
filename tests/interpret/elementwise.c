// Elementwise operations, loops of them, sums and copies.
#include <math.h>

#include "ir/ops/fused.h"
#include "kernels/scalar.h"
#include "tests/interpret/machine.h"

static double of_one(double (*f)(double), const double *x) {
    return f(x[0]);
}

static double of_two(double (*f)(double, double), const double *x) {
    return f(x[0], x[1]);
}

static double of_three(double (*f)(double, double, double), const double *x) {
    return f(x[0], x[1], x[2]);
}

#define CALL(f, x)                                                                                 \
    _Generic(f, double (*)(double)                                                                 \
             : of_one, double (*)(double, double)                                                  \
             : of_two, double (*)(double, double, double)                                          \
             : of_three)(f, x)

static double select_less(double a, double b, double x) {
    return a < b ? x : a == b ? x / 2 : a > b ? 0 : NAN;
}

// Functions are those of kernels/scalar.h for doubles, which tests/kernels/scalar_test.c compares with their
// definitions; the operators stand here.
static double compute(enum hec_op id, const double *x) {
    switch (id) {
#define HEC_OP(id, dialect, operands, results, attributes)
#define HEC_SCALAR(id, operands, results)                                                          \
    case HEC_OP_##id:                                                                              \
        return CALL(hk_##id##_f64, x);
#include "ir/ops.def"
#undef HEC_OP
    case HEC_OP_neg:
        return -x[0];
    case HEC_OP_sqrt:
        return sqrt(x[0]);
    case HEC_OP_add:
        return x[0] + x[1];
    case HEC_OP_sub:
        return x[0] - x[1];
    case HEC_OP_mul:
        return x[0] * x[1];
    case HEC_OP_div:
        return x[0] / x[1];
    case HEC_OP_minimum:
        return x[0] < x[1] ? x[0] : x[1];
    case HEC_OP_maximum:
        return x[0] > x[1] ? x[0] : x[1];
    case HEC_OP_select_less:
        return select_less(x[0], x[1], x[2]);
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
        r->at[e] = compute(hec_op_of(op), x);
    }
}

// Runs a moe.fused, or the epilogue of a call whose GEMM has been computed.
void run_fused(struct machine *m, MlirOperation op) {
    const struct hec_fused fused = hec_fused_of(op);
    for (int i = 0; i < fused.inputs; i++)
        bind(m, mlirBlockGetArgument(fused.body, i), value_of(m, op, fused.input[i]));
    const MlirOperation yield = run_block(m, fused.body);
    for (int i = 0; i < fused.outputs; i++) bind(m, fused.output[i], in(m, yield, i));
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
