// A compilation that is only simulated: the same model with other settings.
#ifndef HECATE_CODEGEN_TUNE_TRIAL_H
#define HECATE_CODEGEN_TUNE_TRIAL_H

#include "codegen/base/options.h"
#include "passes/timeline/estimate.h"

// How far simulated steps are from measured ones, in the mean: bench/results/simulated-steps.md.
extern const double hec_trial_error;

struct hec_trial {
    const char *const *set; // [count] "KEY=VALUE"; these count after those of the command line.
    int count;
    enum hec_trial_effort {
        HEC_TRIAL_MEMORY, // The bytes and the memory alone; nothing is simulated.
        HEC_TRIAL_BRIEF, // A step as the search for slots counts it. The first two need all choices set.
        HEC_TRIAL_SEARCHED, // The same after that search.
        HEC_TRIAL_SUMS,     // Steps, messages as sums through ports.
        HEC_TRIAL_MESSAGES  // Steps, each message for itself.
    } effort;
    int64_t steps; // For the last two.
    // The result.
    bool ended; // False: there was no time for it.
    bool sound; // False: the model, the planner or the cluster do not allow the settings.
    struct hec_step_score score;
};

// How long trials may take, on the clock of hec_now, and a function that is called several times a second
// meanwhile.
struct hec_trial_watch {
    double stop;
    void (*look)(void *context);
    void *context;
};

// Compiles the model of `options` with the settings of each trial, and simulates it: side by side, in as many
// processes as this one may use processors, at most 8. Prints nothing. The result of a trial depends neither on
// the others nor on how many there are at a time; but those that have not ended at `watch->stop` are given up.
void hec_trials(const struct hec_options *options, struct hec_trial *trial, int count,
                const struct hec_trial_watch *watch);

#endif
