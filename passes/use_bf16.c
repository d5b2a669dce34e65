// use-bf16: GEMMs read parameters rounded to bf16.
//
//   before   %w = moe.get @w : f32; %h = moe.contract(%x, %w)
//   after    %w = moe.get @w : bf16; %h = moe.contract(%x, %w) {rounds = true}
//
// Why      A GEMM in bf16 has twice the arithmetic and half the weights to read. Rounding is
//          part of the program's meaning, so it stands in the IR, before gradients are taken.
// Needs    @forward without calls, so that the operand of a GEMM that is a parameter shows as one.
// Leaves   in modules with train.precision = bf16, others as they were: `rounds` on every GEMM with
//          a parameter of f32 on its right, which it reads as the rounded copy, and on attention. The
//          left operand stays f32 and is rounded as the GEMM reads it; sums and results are f32.
//          Gradients of such operations round, too. Products of the router stay as they are, unless
//          train.precision.router = bf16. Elementwise operations, norms, losses, gathers read f32.
// Reports  nothing.
#include "ir/accessors.h"
#include "passes/base/pass.h"

#include <stdlib.h>

#include "ir/core/setting.h"
#include "ir/ops/contract.h"

// Marks the GEMMs that `v`, logits of a router, are made of: elementwise operations may lie between.
static void keep_products(MlirValue v, struct hec_map *kept) {
    const MlirOperation op = hec_defining(v);
    if (mlirOperationIsNull(op)) return;
    if (hec_is_product(op)) *hec_map_at(kept, op.ptr) = 1;
    for (int i = 0; hec_op_traits(op)->elementwise && i < mlirOperationGetNumOperands(op); i++) {
        keep_products(hec_operand(op, i), kept);
    }
}

// The moe.get of the parameter that `v` is, or that it is a transpose of; null: neither.
static MlirOperation get_of(MlirValue v) {
    MlirOperation op = hec_defining(v);
    if (hec_op_is(op, HEC_OP_transpose)) op = hec_defining(hec_transpose_a(op));
    return hec_op_is(op, HEC_OP_get) ? op : (MlirOperation){0};
}

// x @ w, with rows on the left and a parameter on the right.
static bool reads_parameter(MlirOperation op) {
    struct hec_contract c;
    if (!hec_is_product(op) || !hec_contract_of(op, &c)) return false;
    const MlirValue b = hec_product_b(op);
    return c.form != HEC_CONTRACT_TN && c.m.rank > 0 && !mlirOperationIsNull(get_of(b)) &&
           mlirTypeIsAF32(mlirShapedTypeGetElementType(mlirValueGetType(b)));
}

static void set_rounds(MlirOperation op) {
    hec_any_put_rounds(op, true);
}

static void read_rounded(MlirOperation product) {
    const MlirValue b = hec_product_b(product);
    const MlirOperation get = get_of(b);
    struct hec_builder builder = hec_builder_before(get);
    const MlirNamedAttribute param = hec_attr_symbol(builder.context, "param", hec_get_param(get));
    const MlirValue layer = hec_get_layer(get);
    // It has the name of `get`, as it stands for the same parameter.
    const MlirType type = hec_type_rounded(mlirValueGetType(hec_get_value(get)));
    MlirValue weights =
        hec_build_value(&builder, HEC_OP_get, layer.ptr ? 1 : 0, &layer, type, 1, &param);
    if (hec_op_is(hec_defining(b), HEC_OP_transpose)) {
        builder = hec_builder_before(hec_defining(b));
        weights = hec_build_value(&builder, HEC_OP_transpose, 1, &weights,
                                  hec_type_rounded(mlirValueGetType(b)), 0, NULL);
    }
    hec_product_set_b(product, weights);
    set_rounds(product);
}

static enum hec_pass_result run(MlirOperation module, const struct hec_pass_options *options) {
    (void)options;
    if (!hec_setting_is(module, HEC_KEY_train_precision, "bf16")) return HEC_PASS_DONE;
    const bool router = hec_setting_is(module, HEC_KEY_train_precision_router, "bf16");
    struct hec_ops ops = hec_ops_below(module);
    struct hec_map kept = {0};
    for (int k = 0; k < ops.count && !router; k++) {
        if (hec_op_is(ops.op[k], HEC_OP_router)) keep_products(hec_router_logits(ops.op[k]), &kept);
    }
    for (int k = 0; k < ops.count; k++) {
        if (hec_op_is(ops.op[k], HEC_OP_sdpa)) set_rounds(ops.op[k]);
        if (reads_parameter(ops.op[k]) && !hec_map_get(&kept, ops.op[k].ptr))
            read_rounded(ops.op[k]);
    }
    hec_map_free(&kept);
    free(ops.op);
    return HEC_PASS_DONE;
}

const struct hec_pass_code hec_pass_use_bf16 = {
    .run = run,
};
