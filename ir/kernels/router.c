// Routers, and which row each of their top-k choices takes.
#include "ir/accessors.h"
#include "ir/kernels/choose.h"
#include "ir/ops/rule.h"

// The last dimension of `t` is `last`, the others are tokens.
static void by_token(struct hec_choice *choice, const struct hec_tensor *t, const char *last) {
    hec_choice_size(choice, "tokens", t, 0, t->rank - 1);
    hec_choice_size(choice, last, t, t->rank - 1, t->rank);
}

static void add_last(struct hec_choice *choice, const struct hec_tensor *t, const char *name) {
    hec_choice_size(choice, name, t, t->rank - 1, t->rank);
}

void hec_choose_noise(MlirOperation op, struct hec_choice *choice) {
    const struct hec_tensor y = hec_tensor_at(hec_noise_y(op));
    hec_choice_own_kernel(choice, op);
    hec_choice_size(choice, "sequences", &y, 0, 1);
    hec_choice_size(choice, "tokens", &y, 1, 2);
    hec_choice_size(choice, "columns", &y, 2, y.rank);
}

void hec_choose_dropout(MlirOperation op, struct hec_choice *choice) {
    const struct hec_tensor y = hec_tensor_at(hec_dropout_y(op));
    hec_choice_own_kernel(choice, op);
    hec_choice_size(choice, "sequences", &y, 0, 1);
    hec_choice_size(choice, "tokens", &y, 1, 2);
    hec_choice_size(choice, "columns", &y, 2, y.rank);
}

void hec_choose_router(MlirOperation op, struct hec_choice *choice) {
    const struct hec_tensor logits = hec_tensor_at(hec_router_logits(op));
    const struct hec_tensor weights = hec_tensor_at(hec_router_weights(op));
    hec_choice_own_kernel(choice, op);
    by_token(choice, &logits, "experts");
    add_last(choice, &weights, "picks");
}

void hec_choose_router_grad(MlirOperation op, struct hec_choice *choice) {
    const struct hec_tensor scores = hec_tensor_at(hec_router_grad_scores(op));
    const struct hec_tensor dweights = hec_tensor_at(hec_router_grad_dweights(op));
    hec_choice_own_kernel(choice, op);
    by_token(choice, &scores, "experts");
    add_last(choice, &dweights, "picks");
}

// With several ranks groups are of all ranks' sequences: the runtime counts them.
void hec_choose_fractions(MlirOperation op, struct hec_choice *choice) {
    const MlirOperation module = hec_module_of(op);
    if (hec_module_has_world(module) && hec_module_world(module) > 1) return;
    const struct hec_tensor ids = hec_tensor_at(hec_fractions_ids(op));
    const struct hec_tensor fractions = hec_tensor_at(hec_fractions_fractions(op));
    hec_choice_own_kernel(choice, op);
    hec_choice_size(choice, "sequences", &ids, 0, 1);
    hec_choice_size(choice, "tokens", &ids, 1, ids.rank - 1);
    add_last(choice, &ids, "picks");
    add_last(choice, &fractions, "experts");
}

void hec_choose_route(MlirOperation op, struct hec_choice *choice) {
    const struct hec_tensor ids = hec_tensor_at(hec_route_ids(op));
    hec_choice_own_kernel(choice, op);
    by_token(choice, &ids, "picks");
}

void hec_choose_limit(MlirOperation op, struct hec_choice *choice) {
    const struct hec_tensor weights = hec_tensor_at(hec_limit_weights(op));
    hec_choice_own_kernel(choice, op);
    by_token(choice, &weights, "picks");
}
