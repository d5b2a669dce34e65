// The command line of hecatec: one table has the name, value and effect of each option.
#ifndef HECATE_CODEGEN_BASE_OPTIONS_H
#define HECATE_CODEGEN_BASE_OPTIONS_H

#include <stdbool.h>
#include <stdio.h>

#include "lang/base/arena.h"
#include "lang/base/vec.h"

struct hec_texts {
    HEC_VEC(const char *) text;
};

// The command line; NULL and false for missing options.
struct hec_options {
    const char *input;
    const char *output;
    bool emit_c, object, syntax_only; // -S, -c, -fsyntax-only
    struct hec_texts defines, sets;
    const char *from_hf; // A folder.
    const char *cluster;
    const char *target; // NULL: that of the text, else cpu.

    const char *compile_to, *compile_from, *passes, *explain;
    struct hec_texts print_after;
    const char *profile, *emit_plan, *plan; // How experts move.
    bool autotune;
    const char *autotune_seconds, *measure, *launch;
    bool simulate;
    const char *simulate_steps, *trace;
    bool json;
    bool time_passes, verbose, dry_run, save_temps;
    const char *save_temps_folder;
    bool tune, calibrate;
    const char *tune_file, *calibrate_file;

    const char *error_limit, *color;
    const char *ranks; // "mpi" or "tcp"; NULL: as the target has it.
    bool no_warnings, warnings_are_errors;

    const char *cc, *nvcc, *march, *optimize, *sanitize;
    bool debug;

    const char *crash_after; // Not in --help: ends there as an internal error does, for tests.

    bool help, version, print_targets, print_stages, print_passes, print_builtins;
};

// Reads the command line into `options`, whose strings are those of `argv` or live in `arena`.
// Returns false after a complaint to stderr that names the argument.
bool hec_options_parse(struct hec_arena *arena, int argc, char **argv, struct hec_options *options);

// The command line that hec_options_parse reads `options` from, without the program's name. `arena` has the words.
struct hec_texts hec_options_words(const struct hec_options *options, struct hec_arena *arena);

// The text of --help.
void hec_options_help(FILE *out);

#endif
