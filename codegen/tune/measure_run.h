// One candidate of --measure: its program, and how long a step of it takes.
#ifndef HECATE_CODEGEN_TUNE_MEASURE_RUN_H
#define HECATE_CODEGEN_TUNE_MEASURE_RUN_H

#include "codegen/base/options.h"
#include "passes/timeline/estimate.h"

// Steps of a run; the first of them have no forecast yet, and touch memory for the first time.
enum { HEC_MEASURE_STEPS = 15, HEC_MEASURE_LEFT_OUT = 5 };

// Common to all runs of a comparison. Its files lie beside the output, where all machines of a job see them.
struct hec_measure_bed {
    struct hec_arena *arena;
    const struct hec_options *options;
    const char *launch; // Words that come before the program's.
    int64_t ranks;      // Ranks that these start.
    const char *route;  // For people: "zipf:1.2", "trace:run.loads".
    unsigned seconds;   // Limit of a run.
    // Private.
    const char *folder, *forced; // `forced`: the route as programs get it.
    const char *format, *tokens, *loads, *log, *said;
};

// Looks whether the command line `bed->launch` starts something; false after a complaint.
bool hec_measure_can_launch(const struct hec_measure_bed *bed);

// Makes the files that programs read: tokens, and the last iterations of --profile. `of`: the result of the model's
// simulation. False after a complaint. hec_measure_clear removes them.
bool hec_measure_prepare(struct hec_measure_bed *bed, const struct hec_step_score *of);
void hec_measure_clear(struct hec_measure_bed *bed);

// Builds the program with further settings ("KEY=VALUE"), by running hecatec; *program is its path, which
// hec_output_discard removes. NULL, or why it could not be built, a line of `bed->arena`.
const char *hec_measure_build(struct hec_measure_bed *bed, const char *const *set, int count,
                              const char **program);

// Runs it. NULL and the mean time of a token over the steps that count, or why there is none.
const char *hec_measure_run(struct hec_measure_bed *bed, const char *program, double *us);

#endif
