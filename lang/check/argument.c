// Arguments of calls: which there are, and the numbers and truths among them.
#include <string.h>

#include "lang/builtins.h"
#include "lang/check/unit.h"

const struct hec_argument *hec_argument(const struct hec_expr *call, const char *name) {
    for (int i = 0; i < call->arguments.count; i++) {
        const struct hec_argument *argument = &call->arguments.item[i];
        if (argument->name && !strcmp(argument->name, name)) return argument;
    }
    return NULL;
}

bool hec_check_arguments(struct hec_checker *checker, const struct hec_expr *call, int positional,
                         const char *const *allowed, int count) {
    bool good = true;
    int given = 0;
    for (int i = 0; i < call->arguments.count; i++) {
        const struct hec_argument *argument = &call->arguments.item[i];
        if (!argument->name) {
            if (given++ == i) continue;
            return hec_error(checker, argument->at,
                             "an argument without a name stands before those with");
        }
        bool known = false;
        for (int j = 0; j < count; j++) known |= !strcmp(allowed[j], argument->name);
        if (!known) {
            hec_unknown_of(checker, argument->at, "argument", argument->name, call->text, allowed,
                           count);
            good = false;
        } else if (hec_argument(call, argument->name) != argument) {
            good = hec_error(checker, argument->at, "`%s` is given twice", argument->name);
        }
    }
    if (given == positional) return good;
    return hec_error(checker, call->text_at, "`%s` takes %d argument%s by position, not %d",
                     call->text, positional, positional == 1 ? "" : "s", given);
}

// Takes `call` of a row apart, "rope(x, theta = 10000, scaling = none)": how many operands there are, and
// the names of the other arguments, of the checker's arena.
static int signature_of(struct hec_checker *checker, const char *call, const char **names, int most,
                        int *operands) {
    int count = 0;
    *operands = 0;
    for (const char *at = strchr(call, '('); at && *at != ')';) {
        at += *at == '(' ? 1 : 2; // Behind "(" or ", ".
        const size_t word = strcspn(at, " ,)");
        if (at[word] != ' ') {
            ++*operands;
        } else if (count < most) {
            names[count++] = hec_arena_copy(checker->arena, at, word);
        }
        int depth = 0; // `1 / sqrt(A)`
        while (*at && (depth > 0 || (*at != ',' && *at != ')'))) {
            depth += (*at == '(') - (*at == ')');
            at++;
        }
    }
    return count;
}

bool hec_check_builtin(struct hec_checker *checker, const struct hec_expr *expr,
                       enum hec_builtin builtin) {
    enum { NAMES_MAX = 8 };
    const char *names[NAMES_MAX];
    int operands;
    const int count =
        signature_of(checker, hec_builtin_rows[builtin].call, names, NAMES_MAX, &operands);
    return hec_check_arguments(checker, expr, operands, names, count);
}

bool hec_argument_real(struct hec_site *site, const struct hec_expr *call, const char *name,
                       double *value) {
    const struct hec_argument *argument = hec_argument(call, name);
    if (!argument) return true;
    const char *what = hec_arena_format(site->checker->arena, "`%s`", name);
    return hec_constant_real(site->checker, site->env, argument->value, what, value);
}

bool hec_argument_bool(struct hec_site *site, const struct hec_expr *call, const char *name,
                       bool *value) {
    const struct hec_argument *argument = hec_argument(call, name);
    if (!argument) return true;
    const char *what = hec_arena_format(site->checker->arena, "`%s`", name);
    return hec_constant_bool(site->checker, site->env, argument->value, what, value);
}

bool hec_argument_integer(struct hec_site *site, const struct hec_expr *call, const char *name,
                          int64_t smallest, int64_t *value) {
    const struct hec_argument *argument = hec_argument(call, name);
    if (!argument) return true;
    const char *what = hec_arena_format(site->checker->arena, "`%s`", name);
    return hec_constant_integer(site->checker, site->env, argument->value, smallest,
                                (int64_t)1 << 40, what, value);
}
