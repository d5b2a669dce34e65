// Statements of a body.
#include "lang/check/unit.h"

static void assign(struct hec_site *site, const struct hec_stmt *stmt) {
    site->assigned = stmt->name;
    site->statement = stmt->value;
    const struct hec_value value = hec_evaluate(site, stmt->value, NULL);
    site->assigned = NULL;
    site->statement = NULL;
    // A name for what the builder prints; a value that had one keeps it.
    struct hec_node *node = (struct hec_node *)value.node;
    if (node && !node->name) node->name = stmt->name;
    hec_assign(site, stmt->name, stmt->name_at, value);
}

static void give_back(struct hec_site *site, const struct hec_stmt *stmt) {
    if (site->returned) {
        hec_error(site->checker, stmt->at, "`%s` has returned before", site->code->name);
        return;
    }
    site->returned = true;
    site->statement = stmt->value;
    const struct hec_value value = hec_evaluate(site, stmt->value, NULL);
    site->statement = NULL;
    site->result = hec_node_of(site, value, stmt->value->at);
}

static void choose(struct hec_site *site, const struct hec_stmt *stmt) {
    bool condition = false;
    if (!hec_constant_bool(site->checker, site->env, stmt->value, "a condition", &condition)) {
        site->broken = true;
        return;
    }
    hec_check_untaken(site, condition ? &stmt->otherwise : &stmt->body);
    hec_statements(site, condition ? &stmt->body : &stmt->otherwise);
}

static void statement(struct hec_site *site, const struct hec_stmt *stmt) {
    switch (stmt->kind) {
    case HEC_STMT_PARAM:
        hec_declare_params(site, stmt);
        break;
    case HEC_STMT_ASSIGN:
        assign(site, stmt);
        break;
    case HEC_STMT_LOSS:
        hec_declare_loss(site, stmt);
        break;
    case HEC_STMT_RETURN:
        give_back(site, stmt);
        break;
    case HEC_STMT_REPEAT:
        hec_repeat(site, stmt);
        break;
    case HEC_STMT_IF:
        choose(site, stmt);
        break;
    }
}

void hec_statements(struct hec_site *site, const struct hec_stmts *stmts) {
    for (int i = 0; i < stmts->count; i++) {
        const struct hec_stmt *stmt = &stmts->item[i];
        if (site->returned && stmt->kind != HEC_STMT_RETURN) {
            hec_error(site->checker, stmt->at, "this is never reached: `%s` has returned before",
                      site->code->name);
            return;
        }
        statement(site, stmt);
    }
}
