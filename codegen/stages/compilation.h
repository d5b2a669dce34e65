// The state of one compilation, which its stages share. Private to the driver.
#ifndef HECATE_CODEGEN_STAGES_COMPILATION_H
#define HECATE_CODEGEN_STAGES_COMPILATION_H

#include "codegen/base/options.h"
#include "codegen/base/status.h"
#include "codegen/stages/report.h"
#include "ir/core/op.h"
#include "lang/program.h"
#include "passes/pipeline.h"

// Stages in their order. Those of passes have the passes' names and lie between graph and c: stage
// STAGE_PASS + i is the state after step i of the pipeline.
enum hec_stage { STAGE_PARSE, STAGE_CHECK, STAGE_GRAPH, STAGE_PASS, STAGE_C = 1000, STAGE_PROGRAM };

struct hec_compilation {
    struct hec_arena *arena;
    const struct hec_options *options;
    struct hec_diag diag;
    struct hec_reporter reporter;
    MlirContext context;
    struct hec_pipeline *pipeline;
    bool several_ranks; // Known from the IR on.
    MlirOperation module;
    struct hec_program *program;
    int from, to;     // Stages.
    const char *name; // Name of the model.
    const struct hec_plan_tuned
        *tuned;        // By --autotune; NULL: it was not asked, or had nothing to choose.
    void *fit;         // codegen/tune/fit.c has chosen settings. NULL: it has not.
    bool again;        // With other options than the command line's.
    bool trial;        // Nothing is built: modules are not verified.
    bool write_failed; // A file of --save-temps could not be written; complained of.
    double started;    // On the clock of hec_now.
};

// Frees all but the arena, which is the caller's. Errors that were not printed are dropped.
void hec_compilation_end(struct hec_compilation *c);

// Prints the time of the stage that just ended, when asked.
void hec_driver_lap(struct hec_compilation *c, const char *what);
// Prints the errors so far; whether there are any.
bool hec_driver_failed(struct hec_compilation *c);
// Made when first asked for.
MlirContext hec_driver_context(struct hec_compilation *c);
bool hec_make_pipeline(struct hec_compilation *c); // False after a complaint.
// Ends there as a bug does, where the tests ask for it.
void hec_crash_after(const struct hec_compilation *c, const char *stage);

void hec_print_module(struct hec_compilation *c, FILE *out);
// Calls `print` and writes its text to `path`; false after a complaint.
bool hec_write_text(struct hec_compilation *c, const char *path,
                    void (*print)(struct hec_compilation *c, FILE *out));
// The same to -o, or to standard output; returns the exit status.
int hec_finish_text(struct hec_compilation *c, void (*print)(struct hec_compilation *c, FILE *out));
// A file of --save-temps; NULL after a complaint.
const char *hec_temps_path(struct hec_compilation *c, const char *suffix);
// Where the program or its C goes: -o, or the model's name and `suffix`. NULL after a complaint.
const char *hec_output_path(struct hec_compilation *c, const char *suffix);

#endif
