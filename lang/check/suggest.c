// Unknown names, and the names that were probably meant.
#include "lang/check/checker.h"

void hec_unknown(struct hec_checker *checker, struct hec_span at, const char *what,
                 const char *name, const char *const *candidates, int count) {
    hec_unknown_of(checker, at, what, name, NULL, candidates, count);
}

void hec_unknown_of(struct hec_checker *checker, struct hec_span at, const char *what,
                    const char *name, const char *owner, const char *const *candidates, int count) {
    const char *of = owner ? hec_arena_format(checker->arena, " of `%s`", owner) : "";
    const char *meant = hec_closest(name, candidates, count);
    if (meant) {
        hec_error(checker, at, "unknown %s `%s`%s; did you mean `%s`?", what, name, of, meant);
        hec_diag_fix(checker->diag, meant);
    } else {
        hec_error(checker, at, "unknown %s `%s`%s", what, name, of);
    }
}
