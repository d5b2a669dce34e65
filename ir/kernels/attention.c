// Attention and the rotary embedding: tensors [batch, T, heads, width]; one without heads has one.
#include "ir/accessors.h"
#include "ir/kernels/choose.h"
#include "ir/ops/rule.h"

static void add_heads(struct hec_choice *choice, const char *name, const struct hec_tensor *t) {
    hec_choice_size(choice, name, t, 2, t->rank - 1);
}

static void add_last(struct hec_choice *choice, const char *name, const struct hec_tensor *t) {
    hec_choice_size(choice, name, t, t->rank - 1, t->rank);
}

static void add_tokens(struct hec_choice *choice, const struct hec_tensor *t) {
    hec_choice_size(choice, "batch", t, 0, 1);
    hec_choice_size(choice, "positions", t, 1, 2);
}

static bool has_heads(const struct hec_tensor *t) {
    return t->rank == 3 || t->rank == 4;
}

void hec_choose_rope(MlirOperation op, struct hec_choice *choice) {
    const struct hec_tensor x =
        hec_tensor_at(hec_op_is(op, HEC_OP_rope) ? hec_rope_x(op) : hec_rope_grad_dy(op));
    if (!has_heads(&x)) return;
    hec_choice_own_kernel(choice, op);
    add_tokens(choice, &x);
    add_heads(choice, "heads", &x);
    add_last(choice, "width", &x);
}

void hec_choose_documents(MlirOperation op, struct hec_choice *choice) {
    const struct hec_tensor begins = hec_tensor_at(hec_documents_begins(op));
    hec_choice_own_kernel(choice, op);
    add_tokens(choice, &begins);
}

void hec_choose_sdpa(MlirOperation op, struct hec_choice *choice) {
    const struct hec_tensor q = hec_tensor_at(hec_attention_q(op)),
                            k = hec_tensor_at(hec_attention_k(op)),
                            v = hec_tensor_at(hec_attention_v(op));
    if (!has_heads(&q) || !has_heads(&k) || !has_heads(&v)) return;
    hec_choice_own_kernel(choice, op);
    add_tokens(choice, &q);
    add_heads(choice, "heads", &q);
    add_heads(choice, "groups", &k);
    add_last(choice, "width", &q);
    add_last(choice, "vwidth", &v);
}

void hec_choose_sinks_grad(MlirOperation op, struct hec_choice *choice) {
    const struct hec_tensor out = hec_tensor_at(hec_sinks_grad_out(op));
    hec_choice_own_kernel(choice, op);
    add_tokens(choice, &out);
    add_heads(choice, "heads", &out);
    add_last(choice, "vwidth", &out);
}
