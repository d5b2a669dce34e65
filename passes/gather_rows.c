// gather-rows: GEMMs of experts read the rows of tokens where they lie.
//
//   before   %rows = moe.permute(%x, %pair, %slot); %h = moe.grouped_contract(%rows, %w, %first)
//   after    %h = moe.gathered_contract(%x, %w, %first, %pair, %slot)
//
// Why      permute writes a row for each expert of a token, which GEMMs only read again. A GEMM that reads rows
//          through the route needs neither the time nor the memory for that, and backward needs no saved rows.
// Needs    a target that gathers, and gradients: it runs behind recompute, which has backward permute what only
//          GEMMs read.
// Leaves   no permute whose result GEMMs of experts alone read, one as either operand. Where anything else reads
//          the rows they are there, and GEMMs read them, too.
// Reports  nothing.
#include <stdlib.h>

#include "ir/accessors.h"
#include "ir/target/target.h"
#include "passes/base/pass.h"
#include "passes/base/rewrite.h"

// A GEMM with itself would gather both operands.
static bool is_read_by_products(MlirValue rows) {
    HEC_EACH_USE (use, rows) {
        const MlirOperation user = mlirOpOperandGetOwner(use);
        if (!hec_op_is(user, HEC_OP_grouped_contract) ||
            mlirValueEqual(hec_product_a(user), hec_product_b(user)))
            return false;
    }
    return true;
}

static void read_by_route(MlirOperation product, MlirOperation permute) {
    const MlirValue rows = hec_permute_rows(permute), x = hec_permute_x(permute);
    MlirValue in[] = {hec_product_a(product), hec_product_b(product),
                      hec_grouped_contract_first(product), hec_permute_pair(permute),
                      hec_permute_slot(permute)};
    in[mlirValueEqual(in[0], rows) ? 0 : 1] = x;
    struct hec_builder b = hec_builder_before(product);
    const MlirNamedAttribute rounds = hec_attr_bool(b.context, "rounds", true);
    const MlirValue r = hec_product_r(product);
    const MlirValue gathered =
        hec_build_value(&b, HEC_OP_gathered_contract, 5, in, mlirValueGetType(r),
                        hec_any_rounds(product) ? 1 : 0, &rounds);
    mlirValueReplaceAllUsesOfWith(r, gathered);
    mlirOperationDestroy(product);
}

static void remove_permute(MlirOperation permute) {
    const MlirValue rows = hec_permute_rows(permute);
    if (!is_read_by_products(rows)) return;
    while (!hec_is_unused(rows))
        read_by_route(mlirOpOperandGetOwner(mlirValueGetFirstUse(rows)), permute);
    mlirOperationDestroy(permute);
}

static bool gathers(MlirOperation module) {
    return hec_target_of(module)->gathers;
}

static enum hec_pass_result run(MlirOperation module, const struct hec_pass_options *options) {
    (void)options;
    struct hec_ops ops = hec_ops_below(module), permutes = {0}; // Products of `ops` go away.
    for (int k = 0; k < ops.count; k++) {
        if (hec_op_is(ops.op[k], HEC_OP_permute)) hec_ops_push(&permutes, ops.op[k]);
    }
    for (int k = 0; k < permutes.count; k++) remove_permute(permutes.op[k]);
    free(ops.op);
    free(permutes.op);
    return HEC_PASS_DONE;
}

const struct hec_pass_code hec_pass_gather_rows = {
    .applies = gathers,
    .run = run,
};
