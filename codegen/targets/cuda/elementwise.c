// Elementwise operations, alone or fused, copies and sums: each a kernel.
#include <string.h>

#include "codegen/host/expression.h"
#include "codegen/host/function.h"
#include "codegen/host/gradient.h"
#include "codegen/host/home.h"
#include "codegen/host/symbols.h"
#include "codegen/targets/cuda/ops.h"
#include "codegen/targets/cuda/store.h"
#include "ir/accessors.h"

// The name of a tensor in a kernel.
static const char *name_of(struct hec_emitter *e, MlirValue value) {
    const MlirStringRef name = hec_temporary_name(value);
    return hec_arena_copy(&e->arena, name.data, name.length);
}

const char *hec_cuda_base(struct hec_emitter *e, MlirOperation op) {
    const char *name = name_of(e, hec_result(op, 0));
    return *name ? name : strchr(hec_op_row(hec_op_of(op))->name, '.') + 1;
}

int hec_cuda_point(struct hec_emitter *e, struct hec_device_loop *loop, MlirValue value,
                   enum hec_device_use use) {
    return hec_device_point(loop, mlirValueGetType(value), hec_ref(e, value), name_of(e, value),
                            use);
}

// Numbers that are rounded are never sums of several.
static enum hec_device_use written(MlirType type, bool adds) {
    return adds && !hec_type_is_rounded(type) ? HEC_DEVICE_ADDED : HEC_DEVICE_WRITTEN;
}

// Adds a pointer to what an operation makes.
static void point_result(struct hec_emitter *e, struct hec_device_loop *loop, MlirValue value) {
    hec_cuda_point(e, loop, value, written(mlirValueGetType(value), hec_home_adds(value)));
}

void hec_cuda_elementwise(struct hec_emitter *e, MlirOperation op) {
    const int operands = (int)mlirOperationGetNumOperands(op);
    const MlirValue result = hec_result(op, 0);
    MlirType type[5];
    for (int i = 0; i < operands; i++) type[i] = mlirValueGetType(hec_operand(op, i));
    type[operands] = mlirValueGetType(result);
    struct hec_device_loop loop = {
        .nest = hec_nest_of(hec_tensor_of(type[operands]), operands + 1, type)};
    loop.threads = loop.nest.loops;
    point_result(e, &loop, result);
    for (int i = 0; i < operands; i++)
        hec_cuda_point(e, &loop, hec_operand(op, i), HEC_DEVICE_READ);
    hec_device_loop_begin(e, &loop, hec_cuda_base(e, op));
    struct hec_elements at = {.adds = {hec_home_adds(result)}};
    at.output[0] = hec_device_element(e, &loop, 0);
    at.rounds[0] = hec_device_rounds(&loop, 0);
    for (int i = 0; i < operands; i++) at.input[i] = hec_device_number(e, &loop, 1 + i);
    hec_statement(e, "%s", hec_elementwise_text(e, op, &at));
    hec_device_loop_end(e, &loop);
}

void hec_cuda_fused(struct hec_emitter *e, MlirOperation op) {
    const struct hec_fused of = hec_fused_of(op);
    MlirType type[2 * HEC_FUSED_VALUES];
    for (int i = 0; i < of.inputs; i++) type[i] = mlirValueGetType(of.input[i]);
    for (int i = 0; i < of.outputs; i++) type[of.inputs + i] = mlirValueGetType(of.output[i]);
    struct hec_device_loop loop = {
        .nest = hec_nest_of(hec_tensor_of(type[of.inputs]), of.inputs + of.outputs, type)};
    loop.threads = loop.nest.loops;
    for (int i = 0; i < of.outputs; i++) point_result(e, &loop, of.output[i]);
    for (int i = 0; i < of.inputs; i++) hec_cuda_point(e, &loop, of.input[i], HEC_DEVICE_READ);
    hec_device_loop_begin(e, &loop, hec_cuda_base(e, op));
    struct hec_elements at = {0};
    for (int i = 0; i < of.inputs; i++) at.input[i] = hec_device_number(e, &loop, of.outputs + i);
    for (int i = 0; i < of.outputs; i++) {
        at.output[i] = hec_device_element(e, &loop, i);
        at.adds[i] = hec_home_adds(of.output[i]);
        at.rounds[i] = hec_device_rounds(&loop, i);
    }
    const char *single = hec_region_text(e, &of, &at, &e->function->body);
    if (single) hec_statement(e, "%s", single);
    hec_device_loop_end(e, &loop);
}

void hec_cuda_store(struct hec_emitter *e, const struct hec_device_loop *loop, const char *number) {
    const char *to = hec_device_element(e, loop, 0), *rounds = hec_device_rounds(loop, 0);
    if (rounds) {
        hec_statement(e, "%s = %s(%s);", to, rounds, number);
    } else {
        const bool adds = loop->pointer[0].use == HEC_DEVICE_ADDED;
        hec_statement(e, "%s %s %s;", to, adds ? "+=" : "=", number);
    }
}

// to[...] = from[...], or +=, for tensors of the same dimensions.
static void copy(struct hec_emitter *e, const char *to, MlirType type, const char *from,
                 MlirType from_type, const char *name, bool adds) {
    struct hec_device_loop loop = {.nest = hec_nest_of(hec_tensor_of(type), 1, &type)};
    loop.threads = loop.nest.loops;
    hec_device_point(&loop, type, to, "to", written(type, adds));
    hec_device_point(&loop, from_type, from, "from", HEC_DEVICE_READ);
    hec_device_loop_begin(e, &loop, name);
    hec_cuda_store(e, &loop, hec_device_number(e, &loop, 1));
    hec_device_loop_end(e, &loop);
}

void hec_cuda_copy(struct hec_emitter *e, MlirOperation op) {
    const MlirValue from = hec_copy_a(op), to = hec_copy_r(op);
    copy(e, hec_ref(e, to), mlirValueGetType(to), hec_ref(e, from), mlirValueGetType(from),
         hec_cuda_base(e, op), hec_home_adds(to));
}

void hec_cuda_transpose(struct hec_emitter *e, MlirOperation op) {
    const MlirValue a = hec_transpose_a(op), r = hec_transpose_r(op);
    const MlirType type[] = {mlirValueGetType(r), mlirValueGetType(a)};
    struct hec_device_loop loop = {.nest = hec_nest_of(hec_tensor_of(type[0]), 2, type)};
    loop.threads = loop.nest.loops;
    point_result(e, &loop, r);
    hec_cuda_point(e, &loop, a, HEC_DEVICE_READ);
    hec_device_loop_begin(e, &loop, hec_cuda_base(e, op));
    hec_cuda_store(e, &loop, hec_device_number(e, &loop, 1));
    hec_device_loop_end(e, &loop);
}

void hec_cuda_accumulate(struct hec_emitter *e, MlirOperation op) {
    const struct hec_home target = hec_gradient_home(op);
    const MlirValue value = hec_accumulate_value(op);
    if (hec_in_set(hec_home_symbol(e, &target))) {
        hec_emit_fault(e, op, "adds a tensor to gradients that lie in chunks");
        return;
    }
    const MlirType type = mlirValueGetType(value);
    copy(e, hec_home_ref(e, &target), type, hec_ref(e, value), type, name_of(e, value), true);
}

// A sum that is neither over the leading nor over the trailing dimensions: a thread for what is kept, a loop
// over what is summed, in ascending order. (For the others there are kernels.)
void hec_cuda_sum(struct hec_emitter *e, MlirOperation op) {
    const MlirValue a = hec_sum_a(op), r = hec_sum_r(op);
    const MlirType type[] = {mlirValueGetType(a), mlirValueGetType(r)};
    const struct hec_tensor ta = hec_tensor_of(type[0]), tr = hec_tensor_of(type[1]);
    struct hec_tensor order = tr; // The kept dims, then the summed ones.
    for (int i = 0; i < ta.rank; i++) {
        if (hec_tensor_find(&tr, ta.dim[i]) < 0) hec_tensor_append(&order, ta.dim[i], ta.size[i]);
    }
    struct hec_device_loop loop = {.nest = hec_nest_of(order, 2, type)};
    const struct hec_nest *nest = &loop.nest;
    while (loop.threads < nest->loops && nest->first[loop.threads] < tr.rank) loop.threads++;
    point_result(e, &loop, r);
    hec_cuda_point(e, &loop, a, HEC_DEVICE_READ);
    hec_device_loop_begin(e, &loop, hec_cuda_base(e, op));
    hec_statement(e, "%s sum = 0;", e->real);
    for (int i = loop.threads; i < nest->loops; i++) {
        const char *v = hec_nest_variable(nest, i);
        hec_statement(e, "for (int64_t %s = 0; %s < %s; %s++) {", v, v, hec_nest_extent(e, nest, i),
                      v);
        e->function->body.indent++;
    }
    hec_statement(e, "sum += %s;", hec_device_number(e, &loop, 1));
    for (int i = loop.threads; i < nest->loops; i++) hec_close(&e->function->body, "}");
    hec_cuda_store(e, &loop, "sum");
    hec_device_loop_end(e, &loop);
}
