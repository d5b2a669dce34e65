// A compilation that is only simulated: the same model with other settings.
#ifndef HECATE_CODEGEN_DRIVER_TRIAL_H
#define HECATE_CODEGEN_DRIVER_TRIAL_H

#include "codegen/driver/options.h"
#include "passes/pipeline.h"

// Compiles the model of `options` with the settings `more` ("KEY=VALUE", they count after those of the command line) and simulates
// it. Says nothing: false where the model, the planner or the cluster do not allow them.
bool hec_trial(const struct hec_options *options, const char *const *more, int count, int64_t steps,
               bool coarse, struct hec_step_score *score);

#endif
