// The front of the compiler: from a path to a checked program. Every user error ends here.
#ifndef HECATE_LANG_CHECK_H
#define HECATE_LANG_CHECK_H

#include <stdbool.h>
#include <stdio.h>

#include "lang/base/arena.h"
#include "lang/base/diag.h"
#include "lang/program.h"

struct hec_front_options {
    const char *path;
    const char *const *defines; // "L=4": overrides a dim or let, as if it stood there.
    int defines_count;
    const char *const *sets; // "train.steps=10": overrides a setting.
    int sets_count;
    const char
        *cluster; // File of a `cluster` section that takes the place of the model's; or NULL.
    const char *library; // Folder that imports are looked for in after the file's own; or NULL.
};

// Reads, parses and checks the model at `options->path`. Returns true and sets `program` when there
// was no error. All errors of all files are in `diag`, which the caller flushes; `arena` must
// outlive both. The result depends on nothing but the texts and the options.
bool hec_front(const struct hec_front_options *options, struct hec_diag *diag,
               struct hec_arena *arena, struct hec_program **program);

// Parses the file alone, without its imports, and prints it as .moe text that parses to the same
// tree. Returns false when there were errors.
bool hec_front_print_parse(const struct hec_front_options *options, struct hec_diag *diag,
                           struct hec_arena *arena, FILE *out);

// Prints a checked program for people: units, nodes with shapes, parameters with paths, settings.
void hec_program_print(const struct hec_program *program, FILE *out);

// Reports what `target` ("cpu", "cuda:sm_90a") cannot do yet with this program: an error that says
// "not yet" for each. Returns whether there was none.
bool hec_check_target(const struct hec_program *program, const char *target, struct hec_diag *diag);

#endif
