// The table of builtin functions.
#include "lang/builtins.h"

#include <string.h>

const struct hec_builtin_row hec_builtin_rows[HEC_BUILTIN_COUNT] = {
#define HEC_OPERATOR(id, rule, what) [HEC_BUILTIN_##id] = {.name = #id, .text = what},
#define HEC_FUNCTION(id, rule, call_, what)                                                        \
    [HEC_BUILTIN_##id] = {.name = #id, .call = call_, .text = what},
#include "lang/builtins.def"
};

bool hec_builtin_find(const char *name, enum hec_builtin *builtin) {
    for (int i = 0; i < HEC_BUILTIN_COUNT; i++) {
        if (!hec_builtin_rows[i].call || strcmp(hec_builtin_rows[i].name, name)) continue;
        *builtin = (enum hec_builtin)i;
        return true;
    }
    return false;
}

bool hec_builtin_takes(enum hec_builtin builtin, const char *name) {
    const size_t length = strlen(name);
    const char *at = hec_builtin_rows[builtin].call;
    while (at && (at = strstr(at, ", "))) {
        at += 2;
        if (strncmp(at, name, length) == 0 && strncmp(at + length, " =", 2) == 0) return true;
    }
    return false;
}

void hec_builtins_print(FILE *out) {
    for (int i = 0; i < HEC_BUILTIN_COUNT; i++) {
        const struct hec_builtin_row *row = &hec_builtin_rows[i];
        if (row->call) fprintf(out, "%-125s %s\n", row->call, row->text);
    }
}
