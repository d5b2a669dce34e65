// Statements of a body, and the names they define.
#include "lang/check/unit.h"

struct hec_local *hec_find_local(struct hec_site *site, const char *name) {
    for (int i = site->locals.count - 1; i >= 0; i--) {
        if (site->locals.item[i].name == name) return &site->locals.item[i];
    }
    return NULL;
}

void hec_assign(struct hec_site *site, const char *name, struct hec_span at,
                struct hec_value value) {
    struct hec_checker *checker = site->checker;
    const struct hec_entry *entry = hec_find_entry(checker, name);
    if (entry && !entry->unit) {
        hec_error(checker, at, "`%s` is already a %s", name,
                  entry->kind == HEC_ITEM_DIM ? "dim" : "let");
        hec_note(checker, entry->at, "defined here");
        value.broken = true;
    }
    struct hec_local *local = hec_find_local(site, name);
    if (local) {
        const struct hec_node *before = local->value.node;
        if (before && before->kind == HEC_NODE_PARAM) {
            hec_error(checker, at, "`%s` is a parameter: it cannot be assigned", name);
            hec_note(checker, local->at, "declared here");
            return;
        }
        local->value = value;
        local->at = at;
        return;
    }
    HEC_PUSH(checker->arena, &site->locals,
             (struct hec_local){.name = name, .at = at, .value = value});
}

void hec_drop_locals(struct hec_site *site, int count) {
    const bool failed = site->checker->diag->raised != site->raised_before;
    for (int i = count; i < site->locals.count; i++) {
        const struct hec_local *local = &site->locals.item[i];
        if (local->used || local->quiet || failed) continue;
        const bool param = local->value.node && local->value.node->kind == HEC_NODE_PARAM;
        hec_warning(site->checker, local->at, "%s `%s` is never used",
                    param ? "parameter" : "variable", local->name);
    }
    site->locals.count = count;
}

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
