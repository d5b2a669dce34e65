// --measure: the best candidates of --autotune are built and run in turns, and the fastest of them is chosen.
#ifndef HECATE_CODEGEN_TUNE_MEASURE_H
#define HECATE_CODEGEN_TUNE_MEASURE_H

#include "codegen/stages/compilation.h"
#include "codegen/tune/measure_run.h"

enum { HEC_MEASURE_MOST = 8 }; // Candidates beside the model's own settings.

// Whether --measure and --launch fit the rest of the command line; false after a complaint. *count is 0 without them.
bool hec_check_measure(const struct hec_options *options, int *count);

struct hec_measured {
    const char *const *set; // [count] "KEY=VALUE"; these count after those of the command line.
    int count;
    double simulated; // us of a token.
    // The result.
    const char *failed; // Why it could not be built or run; NULL: it ran in every round.
    double us;          // Time of a token, the median of the rounds.
    double ratio, least,
        most; // Its time over that of the first that ran, of rounds: median, least and most.
};

struct hec_measurement {
    struct hec_measure_bed bed;
    char machine[64];
    int rounds;
};

// Whether the launcher can start ranks, asked before a search is made for nothing. False after a complaint.
bool hec_measure_begin(struct hec_compilation *c, const struct hec_step_score *of,
                       struct hec_measurement *m);

// Builds and runs the candidates, says on standard error how it goes, and prints a table. `tokens`: of the step that
// times are told for. Returns the fastest one, of those that are within `gain` of each other the first; -1 after a
// complaint. All files that it makes are gone when it returns, or when a signal ends hecatec.
int hec_measure(struct hec_measurement *m, struct hec_measured *candidate, int count,
                const struct hec_step_score *of, double gain);

#endif
