// A pipeline of passes, given as text, run from stage to stage.
//
//   struct hec_pipeline *pipeline = hec_pipeline_parse(context, hec_pipeline_default, &why);
//   enum hec_pass_result result = hec_pipeline_run(pipeline, module, 0, -1, &hooks);
//   hec_pipeline_free(pipeline);
#ifndef HECATE_PASSES_PIPELINE_H
#define HECATE_PASSES_PIPELINE_H

#include <stdio.h>

#include "passes/base/pass.h"

// For all programs: passes that do not apply to a module leave it as it is.
extern const char *const hec_pipeline_default;

// One step. A step that is none of our passes is an upstream pipeline: `pass` is NULL.
struct hec_step {
    const struct hec_pass *pass;
    struct hec_pass_options options;
    const char *text;  // As written: "select-kernels(sums=apart)".
    const char *stage; // Name of the stage after it: the pass, "simplify-2" for its second use.
    double seconds;    // Seconds of the last run, without verification; 0 when it did not run.
    bool idle;         // In the last run the pass did not apply to the module.
};

struct hec_pipeline;

// Parses `pass,pass(option=value,...),...`. Names that are not ours go to MLIR's parser with all
// they have in brackets: "canonicalize", "func.func(cse)". Returns a pipeline to free, or NULL and
// sets `why` to the complaint, for the caller to free.
struct hec_pipeline *hec_pipeline_parse(MlirContext context, const char *text, char **why);
void hec_pipeline_free(struct hec_pipeline *pipeline);

int hec_pipeline_steps(const struct hec_pipeline *pipeline);
const struct hec_step *hec_pipeline_step(const struct hec_pipeline *pipeline, int index);
// The step that leaves `stage`, or -1.
int hec_pipeline_find(const struct hec_pipeline *pipeline, const char *stage);

struct hec_pipeline_hooks {
    // Called after each step that succeeded, idle ones included, and after the one that broke the
    // module. May be NULL.
    void (*after)(void *user, const struct hec_step *step, MlirOperation module);
    void *user;
    bool trusts; // Modules are not verified: nothing is built from them.
};

// Runs the steps first, first + 1, ... before `end` (negative: to the last; `first`: none). Before
// the first and after upstream steps the module's form is checked (form.h). After each step the
// module is verified (hec_ir_verify) and its attribute hecate.stage set, also by steps whose pass
// does not apply; a module that verified before and does not after is the compiler's fault. Stops at the first step
// that is not done.
enum hec_pass_result hec_pipeline_run(struct hec_pipeline *pipeline, MlirOperation module,
                                      int first, int end, const struct hec_pipeline_hooks *hooks);

// Milliseconds of each step of the last run, as a table.
void hec_pipeline_print_times(const struct hec_pipeline *pipeline, FILE *out);

// ---- registry.c

// All passes, ended by a row without flag.
extern const struct hec_pass hec_passes[];
const struct hec_pass *hec_pass_find(const char *flag, size_t length); // NULL when unknown.

// Every pass with its options, one per line, and the default pipeline.
void hec_passes_print(FILE *out);

// ---- explain_memory.c

// Prints, from a module that place-buffers has gone over: parameters, gradients, optimizer states
// and the arena, and the contents of the arena when most of it is in use. Returns false and reports when
// the module has no homes.
bool hec_explain_memory(MlirOperation module, FILE *out);

// ---- explain_replicas.c

// Prints the memory of a device when experts move, beside expert parallelism; nothing where they stay.
struct hec_memory; // passes/cost/memory.h
void hec_explain_replicas(MlirOperation module, const struct hec_memory *memory, FILE *out);

// ---- explain_plan.c, explain_comm.c

// Print, from a placed module, how experts move, and their transfers. False after a report: the loads that were
// planned with cannot be read any more.
bool hec_explain_plan(MlirOperation module, FILE *out);
bool hec_explain_comm(MlirOperation module, FILE *out);

#endif
