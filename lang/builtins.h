// The table of builtin functions, made from lang/builtins.def: the rows that the checker looks calls up in, and
// --print-builtins and the language reference show.
#ifndef HECATE_LANG_BUILTINS_H
#define HECATE_LANG_BUILTINS_H

#include <stdio.h>

#include "lang/program.h"

struct hec_builtin_row {
    const char *name;
    const char *call; // How it is called, with defaults; NULL: it is an operator.
    const char *text; // Its meaning.
};

extern const struct hec_builtin_row hec_builtin_rows[HEC_BUILTIN_COUNT];

// The function of that name; false: there is none. Operators have no name.
bool hec_builtin_find(const char *name, enum hec_builtin *builtin);

// Whether it has an argument that is given by name.
bool hec_builtin_takes(enum hec_builtin builtin, const char *name);

// Prints one line for each function.
void hec_builtins_print(FILE *out);

#endif
