// The targets of hecatec: one row each.
#include "codegen/driver/targets.h"

#include <string.h>

#include "codegen/c/printer.h"

static const struct {
    const char *name, *text;
    const struct hec_printer *printer; // NULL: not yet.
} targets[] = {
    {"cpu", "C with OpenMP, one process (default)", &hec_c_printer},
    {"cuda", "not yet", NULL},
    {"sim", "not yet", NULL},
};

enum { TARGETS = sizeof targets / sizeof *targets };

const struct hec_printer *hec_target_printer(const char *name) {
    for (int i = 0; i < TARGETS; i++) {
        if (strcmp(targets[i].name, name) == 0) return targets[i].printer;
    }
    return NULL;
}

void hec_targets_print(FILE *out) {
    for (int i = 0; i < TARGETS; i++) fprintf(out, "%-6s %s\n", targets[i].name, targets[i].text);
}
