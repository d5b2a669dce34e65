// Tensors in memory of the host.
#include "codegen/host/memory.h"

#include "codegen/host/function.h"
#include "codegen/host/symbols.h"
#include "ir/accessors.h"

static void keep(struct hec_emitter *e, struct hec_writer *out, const char *const *number,
                 int count, const char *cast) {
    (void)e;
    for (int i = 0; i < count; i++) hec_line(out, "m->%s = %s%s;", number[i], cast, number[i]);
}

static void losses(struct hec_emitter *e, MlirOperation end) {
    static const char *const field[HEC_LOSSES] = {".loss = ", ".cross_entropy = ", ".auxiliary = "};
    const int count = (int)mlirOperationGetNumOperands(end);
    const char *list = "", *comma = "";
    for (int i = 0; i < count; i++, comma = ", ")
        list = HEC_TEXT(e, "%s%s%s%s%s", list, comma, i == HEC_LOSSES ? ".named = {" : "",
                        i < HEC_LOSSES ? field[i] : "", hec_element(e, hec_operand(end, i), "0"));
    hec_statement(e, "return (struct hrt_losses){%s%s};", list, count > HEC_LOSSES ? "}" : "");
}

static void rows(struct hec_emitter *e, MlirOperation op, MlirValue first) {
    const MlirOperation set = hec_find_symbol(e->module, hec_any_set(op));
    hec_statement(e, "m->rows = %s;", hec_element(e, first, hec_experts(e, set)));
}

const struct hec_memory hec_host_memory = {
    .pointer = "", .address = "&", .keep = keep, .losses = losses, .rows = rows};
