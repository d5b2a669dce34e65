// How preferences and rollouts move a model, as means over a step's pairs or tokens.
#ifndef HECATE_RUNTIME_LOG_OBJECTIVE_H
#define HECATE_RUNTIME_LOG_OBJECTIVE_H

#include "runtime/train/trainer.h"

struct hrt_objective_number {
    const char *name, *help; // "margin"; its meaning.
    double value;
};

enum { HRT_OBJECTIVE_NUMBERS = 6 };

// The numbers that the step has. Returns how many: 0 with other objectives, where no pair or token counted, and where a
// device with separate memory computes. `section`: the object of these numbers in logs.
int hrt_log_objective_of(const struct hrt_step_report *step,
                         struct hrt_objective_number out[HRT_OBJECTIVE_NUMBERS],
                         const char **section);

#endif
