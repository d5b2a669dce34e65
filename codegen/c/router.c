// The router, its auxiliary losses, and rows by expert.
#include <stdlib.h>

#include "codegen/c/ops.h"
#include "codegen/host/rows.h"

static const struct hec_word scores[] = {
    {"softmax", "HK_SOFTMAX"}, {"sigmoid", "HK_SIGMOID"}, {"sqrtsoftplus", "HK_SQRTSOFTPLUS"}, {0}};
static const struct hec_word group_scores[] = {
    {"best", "HK_GROUP_BEST"}, {"two_best", "HK_GROUP_TWO_BEST"}, {0}};
static const struct hec_word weights[] = {{"scores", "HK_SCORES"},
                                          {"renormalized", "HK_RENORMALIZED"},
                                          {"softmax_of_topk", "HK_SOFTMAX_OF_TOPK"},
                                          {0}};

// Layers of one mixture are numbered below those of the next.
enum { layer_bits = 16 };

// Everything but the last dimension: tokens; and the last one.
static const char *leading(struct hec_emitter *e, MlirValue v) {
    const struct hec_tensor t = hec_tensor_of(mlirValueGetType(v));
    return hec_product(e, &t, 0, t.rank - 1);
}

static const char *last(struct hec_emitter *e, MlirValue v) {
    const struct hec_tensor t = hec_tensor_of(mlirValueGetType(v));
    return hec_product(e, &t, t.rank - 1, t.rank);
}

static const char *rule_of(struct hec_emitter *e, MlirOperation op, MlirValue all,
                           MlirValue picked) {
    const char *text = HEC_TEXT(e, "(struct hk_router_rule){.experts = %s, .topk = %s",
                                last(e, all), last(e, picked));
    if (hec_get_int(op, "groups") > 1) {
        text = HEC_TEXT(e, "%s, .groups = %" PRId64 ", .topk_groups = %" PRId64, text,
                        hec_get_int(op, "groups"), hec_get_int(op, "topk_groups"));
    }
    if (hec_has_attr(op, "group_score")) {
        text = HEC_TEXT(e, "%s, .group_score = %s", text,
                        hec_word(e, op, "group_score", group_scores));
    }
    return HEC_TEXT(e, "%s, .score = %s, .weight = %s, .scale = %s}", text,
                    hec_word(e, op, "score", scores), hec_word(e, op, "weight", weights),
                    hec_number(e, hec_get_float(op, "scale")));
}

// Where the runtime forces and records the choice of this router: the arguments `forced, record`.
// A router belongs to the set and layer whose loads it counts; one that counts for nobody has none.
static const char *routing_of(struct hec_emitter *e, MlirValue loads) {
    const struct hec_home home = hec_value_home(e, loads);
    const MlirOperation set = home.kind == HEC_HOME_SLOT
                                  ? hec_set_of_loads(e, hec_home_symbol(e, &home))
                                  : (MlirOperation){0};
    if (mlirOperationIsNull(set)) return "NULL, NULL";
    const char *place = HEC_TEXT(e, "m->routing.%s%s", hec_member(e, set), hec_home_row(e, &home));
    return HEC_TEXT(e, "%s.forced, %s.record", place, place);
}

void hec_emit_noise(struct hec_emitter *e, MlirOperation op) {
    const MlirValue y = hec_result(op, 0);
    const struct hec_tensor t = hec_tensor_of(mlirValueGetType(y));
    const char *layer = HEC_TEXT(e, "%" PRId64, hec_get_int(op, "number") << layer_bits);
    if (mlirOperationGetNumOperands(op) > 0) {
        if (!e->function->layer) {
            hec_emit_fault(e, op, "is of a layer, outside of a loop over layers");
            return;
        }
        e->function->uses_layer = true;
        layer = HEC_TEXT(e, "%s + %s", layer, e->function->layer);
    }
    hec_statement(e, "hk_noise_%s(%s, m->noise, %s, %s, %s, %s, %s);", e->suffix, hec_ref(e, y),
                  layer, hec_product(e, &t, 0, 1), hec_product(e, &t, 1, 2),
                  hec_product(e, &t, 2, t.rank), hec_number(e, hec_get_float(op, "amount")));
}

void hec_emit_router(struct hec_emitter *e, MlirOperation op) {
    const MlirValue logits = hec_operand(op, 0);
    const bool biased = mlirOperationGetNumOperands(op) > 1;
    const char *result[4];
    for (int i = 0; i < 4; i++) result[i] = hec_ref(e, hec_result(op, i));
    hec_statement(e, "hk_router_%s(%s, %s, %s, %s, %s, %s, %s, %s, %s);", e->suffix, result[0],
                  result[1], result[2], result[3], hec_ref(e, logits),
                  biased ? hec_ref(e, hec_operand(op, 1)) : "NULL",
                  routing_of(e, hec_result(op, 3)), leading(e, logits),
                  rule_of(e, op, logits, hec_result(op, 1)));
}

void hec_emit_router_grad(struct hec_emitter *e, MlirOperation op) {
    const MlirValue dweights = hec_operand(op, 0), all = hec_operand(op, 1);
    const bool scored = mlirOperationGetNumOperands(op) > 4;
    hec_statement(e, "hk_router_grad_%s(%s, %s, %s, %s, %s, %s, %s, %s);", e->suffix,
                  hec_ref(e, hec_result(op, 0)), hec_ref(e, dweights),
                  scored ? hec_ref(e, hec_operand(op, 4)) : "NULL", hec_ref(e, all),
                  hec_ref(e, hec_operand(op, 2)), hec_ref(e, hec_operand(op, 3)), leading(e, all),
                  rule_of(e, op, all, dweights));
}

// What is passed for a step's loads so far: the counts of the set and layer, and the iteration.
static const char *running_of(struct hec_emitter *e, MlirOperation op, MlirOperation set) {
    if (!hec_get_bool(op, "per_step")) return "NULL";
    const bool layered = mlirOperationGetNumOperands(op) > 1;
    e->function->uses_layer |= layered;
    return HEC_TEXT(e, "m->step_loads.%s%s", hec_member(e, set),
                    layered ? HEC_TEXT(e, "[%s]", e->function->layer) : "");
}

void hec_emit_fractions(struct hec_emitter *e, MlirOperation op) {
    const MlirValue ids = hec_operand(op, 0);
    const struct hec_tensor t = hec_tensor_of(mlirValueGetType(ids));
    const MlirOperation set = hec_find_symbol(e->module, hec_get_string(op, "set"));
    const char *to = hec_ref(e, hec_result(op, 0)), *running = running_of(e, op, set);
    const char *iteration = hec_get_bool(op, "per_step") ? "m->iteration" : "0";
    const char *sequences = hec_product(e, &t, 0, 1), *tokens = hec_product(e, &t, 1, t.rank - 1);
    if (e->world > 1) {
        hec_statement(e, "hrt_fractions(%s, %s, %s, %s, %s, %s, %s, %s);", hec_route_key(e, op), to,
                      running, hec_ref(e, ids), sequences, tokens, hec_group_tokens(e, op, ids),
                      iteration);
        return;
    }
    const int64_t group = hec_has_attr(op, "group") ? hec_get_int(op, "group") : 0;
    hec_statement(e, "hk_fractions_%s(%s, %s, %s, %s, %s, %s, %s, %" PRId64 ", %s);", e->suffix, to,
                  running, hec_ref(e, ids), sequences, tokens, last(e, ids), hec_experts(e, set),
                  group, iteration);
}

// ---- rows by expert

// The constant of the first set with this many experts; routing is not tied to a set in the IR.
static const char *experts_text(struct hec_emitter *e, int64_t experts) {
    const struct hec_ops all = hec_ops_in(hec_module_body(e->module));
    const char *text = HEC_TEXT(e, "%" PRId64, experts);
    for (int i = 0; i < all.count; i++) {
        if (!hec_op_is(all.op[i], HEC_OP_set)) continue;
        if (hec_get_int(all.op[i], "experts") != experts) continue;
        text = hec_experts(e, all.op[i]);
        break;
    }
    free(all.op);
    return text;
}

void hec_emit_route(struct hec_emitter *e, MlirOperation op) {
    const MlirValue ids = hec_operand(op, 0);
    const char *first = hec_ref(e, hec_result(op, 0)), *pair = hec_ref(e, hec_result(op, 1));
    hec_statement(e, "hk_route(%s, %s, %s, %s, %s, %s, %s);", first, pair,
                  hec_ref(e, hec_result(op, 2)), hec_ref(e, ids), leading(e, ids), last(e, ids),
                  experts_text(e, hec_get_int(op, "experts")));
}

void hec_emit_limit(struct hec_emitter *e, MlirOperation op) {
    const MlirValue weights = hec_operand(op, 0);
    const struct hec_tensor first = hec_tensor_of(mlirValueGetType(hec_operand(op, 1)));
    const char *result[3], *operand[3];
    for (int i = 0; i < 3; i++) result[i] = hec_ref(e, hec_result(op, i));
    for (int i = 0; i < 3; i++) operand[i] = hec_ref(e, hec_operand(op, i));
    hec_statement(e, "hk_limit_%s(%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s);", e->suffix,
                  result[0], result[1], result[2], operand[0], operand[1], operand[2],
                  leading(e, weights), last(e, weights), experts_text(e, first.size[0] - 1),
                  hec_group_tokens(e, op, weights), hec_number(e, hec_get_float(op, "capacity")),
                  hec_drop_rule(e, op));
}
