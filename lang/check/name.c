// Names in a body: the variable that one means, and the message for an unknown one.
#include "lang/builtins.h"
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

void hec_unknown_name(struct hec_site *site, const struct hec_expr *expr) {
    struct hec_checker *checker = site->checker;
    if (site->broken) return;
    HEC_VEC(const char *) known = {0};
    for (int i = 0; i < site->locals.count; i++)
        HEC_PUSH(checker->arena, &known, site->locals.item[i].name);
    for (int i = 0; i < checker->entries.count; i++)
        HEC_PUSH(checker->arena, &known, checker->entries.item[i]->name);
    hec_unknown(checker, expr->at, "name", expr->text, known.item, known.count);
}

void hec_unknown_function(struct hec_site *site, const struct hec_expr *expr) {
    struct hec_checker *checker = site->checker;
    HEC_VEC(const char *) known = {0};
    for (int i = 0; i < checker->entries.count; i++) {
        if (checker->entries.item[i]->unit)
            HEC_PUSH(checker->arena, &known, checker->entries.item[i]->name);
    }
    for (int i = 0; i < HEC_BUILTIN_COUNT; i++) {
        if (hec_builtin_rows[i].call) HEC_PUSH(checker->arena, &known, hec_builtin_rows[i].name);
    }
    hec_unknown(checker, expr->text_at, "block or function", expr->text, known.item, known.count);
}
