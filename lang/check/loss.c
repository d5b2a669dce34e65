// Losses of a model by name.
#include <string.h>

#include "lang/check/unit.h"

enum { NAME_MOST = 32 }; // Characters: logs and curves show so many.

struct hec_value hec_call_loss(struct hec_site *site, const struct hec_expr *expr,
                               enum hec_builtin builtin) {
    (void)builtin;
    hec_error(site->checker, expr->text_at, "`%s` is what a loss is: `loss name = %s`", expr->text,
              hec_expr_text(site->checker->arena, expr));
    return (struct hec_value){.broken = true};
}

static bool check_name(struct hec_site *site, const struct hec_stmt *stmt) {
    struct hec_checker *checker = site->checker;
    for (int i = 0; i < checker->losses.count; i++) {
        if (strcmp(checker->losses.item[i].name, stmt->name) != 0) continue;
        hec_error(checker, stmt->name_at, "a second loss `%s`", stmt->name);
        hec_note(checker, checker->losses.item[i].at, "the first one");
        return false;
    }
    if (strlen(stmt->name) > NAME_MOST)
        return hec_error(checker, stmt->name_at, "the name of a loss has at most %d characters",
                         NAME_MOST);
    if (checker->losses.count < HEC_LOSSES_MAX) return true;
    return hec_error(checker, stmt->at, "a model has at most %d losses by name", HEC_LOSSES_MAX);
}

// Whether a loss may stand here at all.
static bool check_place(struct hec_site *site, const struct hec_stmt *stmt) {
    struct hec_checker *checker = site->checker;
    if (site->caller)
        hec_error(checker, stmt->at, "only a model has losses: return what it needs");
    else if (site->layers)
        hec_error(checker, stmt->at, "not yet: a loss in a repeat");
    else
        return true;
    return false;
}

static bool read_options(struct hec_site *site, const struct hec_stmt *stmt, double *weight) {
    static const char *const known[] = {"weight"};
    struct hec_checker *checker = site->checker;
    for (int i = 0; i < stmt->options.count; i++) {
        const struct hec_argument *option = &stmt->options.item[i];
        if (!option->name)
            return hec_error(checker, option->at, "a loss's options have names: `weight = 0.3`");
        if (strcmp(option->name, "weight") != 0) {
            hec_unknown(checker, option->at, "option", option->name, known, 1);
            return false;
        }
        if (i > 0) return hec_error(checker, option->at, "`weight` is given twice");
        if (!hec_constant_real(checker, site->env, option->value, "a weight", weight)) return false;
        if (*weight >= 0) continue;
        return hec_error(checker, option->value->at, "a weight is at least 0, not %s",
                         hec_number_text(checker->arena, *weight));
    }
    return true;
}

// The logits of a call of cross_entropy; NULL after reporting that there are none.
static const struct hec_node *read_logits(struct hec_site *site, const struct hec_expr *expr) {
    struct hec_checker *checker = site->checker;
    const struct hec_node *logits = hec_node_of(site, hec_evaluate(site, expr, NULL), expr->at);
    if (!logits) return NULL;
    if (!logits->integer && logits->batched && logits->shape.rank == 2 &&
        logits->shape.dim[0].name == checker->positions)
        return logits;
    hec_error(checker, expr->at, "logits are `[%s, V]`, of every position; this is %s",
              checker->positions, hec_shape_text(checker->arena, &logits->shape));
    return NULL;
}

// A loss must not predict a token that its logits know.
static bool check_knows(struct hec_checker *checker, const struct hec_named_loss *loss) {
    if (loss->logits->ahead < loss->ahead) return true;
    hec_error(checker, loss->at, "`%s` predicts tokens that its logits know", loss->name);
    hec_detail(checker, "position t predicts token t + %lld, its logits depend on token t + %lld",
               (long long)loss->ahead, (long long)loss->logits->ahead);
    return false;
}

// Which tokens are predicted: those of the model's own logits unless others are given.
static bool read_targets(struct hec_site *site, const struct hec_expr *call,
                         struct hec_named_loss *loss) {
    struct hec_checker *checker = site->checker;
    const struct hec_argument *argument = hec_argument(call, "targets");
    loss->ahead = 1;
    if (argument) {
        const struct hec_expr *expr = argument->value;
        loss->targets = hec_node_of(site, hec_evaluate(site, expr, NULL), expr->at);
        if (!loss->targets) return false;
        if (loss->targets->builtin != HEC_BUILTIN_ahead || loss->targets->kind != HEC_NODE_BUILTIN)
            return hec_error(checker, expr->at,
                             "targets are tokens to come, as in `targets = ahead(ids, 2)`");
        loss->ahead = loss->targets->ahead;
    }
    return check_knows(checker, loss);
}

// The temperature of a call of distill. A teacher's entries at a position predict the next token.
static bool read_teacher(struct hec_site *site, const struct hec_expr *call,
                         struct hec_named_loss *loss) {
    struct hec_checker *checker = site->checker;
    loss->ahead = 1;
    loss->temperature = 1;
    if (!hec_argument_real(site, call, "temperature", &loss->temperature)) return false;
    if (loss->temperature > 0) return check_knows(checker, loss);
    return hec_error(checker, hec_argument(call, "temperature")->value->at,
                     "a temperature is more than 0, not %s",
                     hec_number_text(checker->arena, loss->temperature));
}

void hec_declare_loss(struct hec_site *site, const struct hec_stmt *stmt) {
    struct hec_checker *checker = site->checker;
    const struct hec_expr *call = stmt->value;
    struct hec_named_loss loss = {.name = stmt->name, .weight = 1, .at = stmt->name_at};
    if (!check_place(site, stmt) || !check_name(site, stmt) ||
        !read_options(site, stmt, &loss.weight))
        return;
    const bool called = call->kind == HEC_EXPR_CALL;
    const bool soft = called && strcmp(call->text, "distill") == 0;
    if (!soft && (!called || strcmp(call->text, "cross_entropy") != 0)) {
        hec_error(checker, call->at,
                  "not yet: a loss that is no `cross_entropy(logits)` or `distill(logits)`");
        return;
    }
    if (!hec_check_builtin(checker, call, soft ? HEC_BUILTIN_distill : HEC_BUILTIN_cross_entropy))
        return;
    site->statement = call;
    loss.logits = read_logits(site, call->arguments.item[0].value);
    const bool good = loss.logits && (soft ? read_teacher : read_targets)(site, call, &loss);
    site->statement = NULL;
    if (good) HEC_PUSH(checker->arena, &checker->losses, loss);
}
