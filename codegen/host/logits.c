// logits: the call of each head's kernel once more, for some tokens of the last forward, which does nothing else then.
#include "codegen/host/logits.h"

#include "codegen/host/back_end.h"
#include "codegen/host/function.h"
#include "codegen/host/symbols.h"
#include "ir/accessors.h"

int64_t hec_logits_rows(MlirOperation slot) {
    const struct hec_tensor t = hec_tensor_of(hec_any_type(slot));
    return t.rank == 2 && mlirStringRefEqual(t.dim[0], HEC_STR("block")) ? t.size[0] : 0;
}

// The slot that keeps the block of `call`; null: none does.
static MlirOperation slot_of(struct hec_emitter *e, MlirOperation call) {
    const MlirValue block = hec_head_loss_block(call);
    HEC_EACH_USE (use, block) {
        const MlirOperation user = mlirOpOperandGetOwner(use);
        if (hec_op_is(user, HEC_OP_stash)) return hec_find_symbol(e->module, hec_any_slot(user));
    }
    return (MlirOperation){0};
}

// 0: the model's own; then losses that have names, in the order of their slots.
static int number_of(struct hec_emitter *e, MlirOperation slot) {
    int number = 0;
    HEC_EACH (op, hec_symbols(e, HEC_OP_slot)) {
        number += hec_any_has_loss(op);
        if (mlirOperationEqual(op, slot)) break;
    }
    const bool named = hec_any_has_loss(slot);
    return named ? number : 0;
}

static void emit_call(struct hec_emitter *e, MlirOperation call, MlirOperation slot) {
    struct hec_writer *out = &e->function->body;
    if (hec_value_home(e, hec_head_loss_x(call)).kind == HEC_HOME_ARENA)
        hec_emit_fault(e, call, "computes logits from what is not kept behind @forward");
    hec_open(out, "if (loss == %d) {", number_of(e, slot));
    hec_scope_enter(e);
    e->back_end->of(HEC_OP_call)(e, call);
    hec_scope_leave(e);
    hec_close(out, "}");
}

bool hec_emit_logits(struct hec_emitter *e) {
    bool found = false;
    HEC_EACH (op, hec_ops_below(hec_find_symbol(e->module, HEC_STR("forward")))) {
        if (hec_op_computes(op) != HEC_OP_linear_cross_entropy) continue;
        const MlirOperation slot = slot_of(e, op);
        if (mlirOperationIsNull(slot)) continue;
        if (!found) {
            struct hec_function *f = hec_function_begin(e, "logits", HEC_STR("logits"));
            f->model_is_void = true;
            e->only = "&only";
            hec_statement(e, "struct %s *m = model;", e->name);
            hec_statement(e, "const int64_t batch = m->batch;");
            hec_statement(e, "const struct hk_tokens only = {first, count};");
        }
        found = true;
        emit_call(e, op, slot);
    }
    if (!found) return false;
    e->only = NULL;
    e->function->uses_batch = false; // It is declared.
    hec_function_end(e,
                     "static void logits(void *model, int loss, int64_t first, int64_t count) {");
    return true;
}
