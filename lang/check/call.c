// Calls: of builtin functions, blocks and moes.
#include "lang/builtins.h"
#include "lang/check/unit.h"

static const struct hec_value broken = {.broken = true};

struct hec_value hec_call(struct hec_site *site, const struct hec_expr *expr, const char *callee) {
    struct hec_checker *checker = site->checker;
    struct hec_entry *entry = hec_find_entry(checker, expr->text);
    enum hec_builtin builtin;
    if (!entry && hec_builtin_find(expr->text, &builtin))
        return hec_call_builtin(site, expr, builtin, callee);
    if (!entry) {
        hec_unknown_function(site, expr);
        for (int i = 0; i < expr->arguments.count; i++) // For their own errors.
            if (!expr->arguments.item[i].name)
                hec_evaluate(site, expr->arguments.item[i].value, NULL);
        return broken;
    }
    if (!entry->unit || entry->kind == HEC_ITEM_MODEL) {
        hec_error(checker, expr->text_at, "`%s` is no block", expr->text);
        hec_note(checker, entry->at, "defined here");
        return broken;
    }
    entry->elaborated = true;
    if (site->expert_of && entry->kind == HEC_ITEM_MOE) {
        hec_error(checker, expr->text_at, "not yet: a moe inside an expert");
        return broken;
    }
    return hec_call_unit(site, expr, entry);
}
