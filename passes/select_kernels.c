// select-kernels: operations that a kernel computes become calls of it.
//
//   before   %y = moe.contract(%x, %w); %r = moe.add(%a, %y)
//            %u = moe.contract(%x, %v); %h = moe.fused(%g, %u) {epilogue = true, ..}
//   after    %r = hk.call(%x, %w, %a) {kernel = "matmul_nn", m = ["batch", "T"], n = ["F"], k = ["D"]}
//            %u, %h = hk.call(%x, %v, %g) {kernel = "matmul_nn", ..} { ^(%block, %p): .. }
//
// Why      The kernel, its sizes, the operand that it adds to and the epilogue on each block of
//          its result are decided here, once for all later stages: homes, proofs, emission.
// Needs    a module that verifies, with epilogues right behind their GEMMs.
// Leaves   hk.call for every operation of kernels.def. Loops (elementwise, moe.fused, sums that no kernel
//          makes), calls of the runtime and accesses to symbols stay as they are. Sums that a kernel
//          can make are calls with an operand to add to. Each gradient of experts is made once for each
//          parameter that gets it.
// Reports  nothing.
#include <stdlib.h>
#include <string.h>

#include "ir/accessors.h"
#include "ir/core/kernel.h"
#include "ir/ops/fused.h"
#include "passes/base/pass.h"
#include "passes/base/rewrite.h"
#include "passes/sums.h"

// ---- gradients of experts

// %g; accumulate %g @a; accumulate %g @b  ->  each accumulate gets a %g of its own.
static void separate(MlirOperation accumulate) {
    const MlirValue value = hec_accumulate_value(accumulate);
    const MlirOperation maker = hec_defining(value);
    if (mlirOperationIsNull(maker) || hec_is_used_once(value) ||
        mlirOperationGetNumResults(maker) != 1 || !hec_op_traits(maker)->pure)
        return;
    struct hec_builder b = hec_builder_before(accumulate);
    struct hec_map none = {0};
    hec_accumulate_set_value(accumulate, hec_result(hec_clone_mapped(&b, maker, &none), 0));
    hec_map_free(&none);
}

// Gradients of experts lie in chunks, where only the operation that makes one can add to them: makes
// one that two parameters share (the sum of two GEMMs, say) once for each.
static void separate_all(MlirOperation module) {
    HEC_EACH_OF (op, hec_ops_below(module), HEC_OP_accumulate) {
        const MlirOperation param = hec_find_symbol(module, hec_any_param(op));
        if (!mlirOperationIsNull(param) && hec_param_has_set(param)) separate(op);
    }
}

// ---- calls

static MlirNamedAttribute size_of(MlirContext c, const struct hec_size *size) {
    MlirAttribute name[HEC_IR_RANK_MAX];
    for (int i = 0; i < size->dims.rank; i++) name[i] = mlirStringAttrGet(c, size->dims.dim[i]);
    return hec_attr(c, size->name, mlirArrayAttrGet(c, size->dims.rank, name));
}

// `add`: the moe.add whose other operand the kernel adds to; null: none.
static void call_kernel(MlirOperation op, MlirOperation add) {
    const MlirContext c = mlirOperationGetContext(op);
    const struct hec_choice choice = hec_choose_kernel(op);
    if (!choice.kernel) return;
    MlirNamedAttribute size[HEC_SIZES_MAX];
    for (int i = 0; i < choice.sizes; i++) size[i] = size_of(c, &choice.size[i]);

    MlirValue onto = {0};
    if (!mlirOperationIsNull(add)) {
        const MlirValue a = hec_add_a(add);
        onto = mlirValueEqual(a, hec_result(op, 0)) ? hec_add_b(add) : a;
    }
    const MlirOperation epilogue = hec_epilogue_of(op);
    const int results = (int)mlirOperationGetNumResults(op);
    const MlirOperation call =
        hec_build_kernel_call(choice.kernel, op, onto, epilogue, choice.sizes, size);
    if (!mlirOperationIsNull(add)) {
        mlirOperationSetLocation(call, mlirOperationGetLocation(add));
        mlirValueReplaceAllUsesOfWith(hec_add_r(add), hec_result(call, 0));
        mlirOperationDestroy(add);
    }
    if (!mlirOperationIsNull(epilogue)) {
        for (int i = 0; i < mlirOperationGetNumResults(epilogue); i++) {
            mlirValueReplaceAllUsesOfWith(hec_result(epilogue, i), hec_result(call, results + i));
        }
        mlirOperationDestroy(epilogue);
    }
    for (int i = 0; i < results; i++) {
        mlirValueReplaceAllUsesOfWith(hec_result(op, i), hec_result(call, i));
    }
    mlirOperationDestroy(op);
}

static void run_on(MlirOperation func, bool sums) {
    struct hec_ops ops = hec_ops_below(func);
    struct hec_map added = {0}; // Operation -> the moe.add that it makes.
    for (int k = 0; k < ops.count && sums; k++) {
        const int operand = hec_sum_operand(ops.op[k]);
        if (operand < 0) continue;
        const MlirOperation maker = hec_defining(hec_operand(ops.op[k], operand));
        *hec_map_at(&added, maker.ptr) = (intptr_t)ops.op[k].ptr;
    }
    // A sum or an epilogue that goes away with its GEMM has no kernel of its own.
    MlirOperation *chosen = ops.op;
    int count = 0;
    for (int k = 0; k < ops.count; k++) {
        if (hec_choose_kernel(ops.op[k]).kernel) chosen[count++] = ops.op[k];
    }
    for (int k = 0; k < count; k++) {
        call_kernel(chosen[k], (MlirOperation){(void *)hec_map_get(&added, chosen[k].ptr)});
    }
    free(ops.op);
    hec_map_free(&added);
}

static enum hec_pass_result run(MlirOperation module, const struct hec_pass_options *options) {
    const bool sums = strcmp(hec_pass_option(options, "sums", "in-place"), "apart") != 0;
    separate_all(module);
    HEC_EACH_OF (op, hec_ops_in(hec_module_body(module)), HEC_OP_FUNC) run_on(op, sums);
    return HEC_PASS_DONE;
}

// For measuring what it is worth (bench/ablation).
static const struct hec_pass_option options_known[] = {
    {"sums", "in-place|apart", "Whether kernels add to an operand where they can"},
    {0},
};

const struct hec_pass_code hec_pass_select_kernels = {
    .option = options_known,
    .run = run,
};
