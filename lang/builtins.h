// The builtin functions, for people: --print-builtins and the language reference show this table.
#ifndef HECATE_LANG_BUILTINS_H
#define HECATE_LANG_BUILTINS_H

#include <stdio.h>

struct hec_builtin_row {
    const char *name;
    const char *call; // How it is called, with defaults.
    const char *text; // What it computes.
};

extern const struct hec_builtin_row hec_builtin_rows[];
extern const int hec_builtin_rows_count;

// Prints one line for each.
void hec_builtins_print(FILE *out);

#endif
