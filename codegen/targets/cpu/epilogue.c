// Epilogues: the loop behind a GEMM as a function that the GEMM calls for each block of its
// result.
#include "codegen/targets/cpu/ops.h"
#include "ir/core/kernel.h"
#include "ir/ops/contract.h"

const char *hec_epilogue(struct hec_emitter *e, MlirOperation op) {
    const struct hec_call call = hec_call_of(op);
    struct hec_contract product;
    if (call.outputs == 0 || !hec_contract_of(op, &product)) return "NULL";
    struct hec_function *outer = e->function;
    const MlirStringRef value = hec_temporary_name(hec_result(op, call.results));
    const char *base = HEC_TEXT(e, "%s%s%.*s_block", outer->group->name, value.length ? "_" : "",
                                (int)value.length, value.data);
    const char *name = hec_ident(&outer->names, HEC_STR(base), "block");
    hec_ident_reserve(&e->globals, name);

    struct hec_function *f = hec_function_begin_block(e);
    hec_emit_epilogue_loops(e, op, product.m.rank);
    if (!f->uses_layer) hec_statement(e, "(void)i;");
    hec_function_end(
        e, HEC_TEXT(e, "static void %s(void *model, int64_t i, struct hk_block block) {", name));
    outer->uses_layer = outer->uses_layer || f->uses_layer;
    return HEC_TEXT(e, "&(struct hk_epilogue){%s, m, %s}", name,
                    f->uses_layer ? outer->layer : "0");
}
