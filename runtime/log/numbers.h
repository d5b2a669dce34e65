// The numbers of a step, with the names that they have in tools that draw curves.
#ifndef HECATE_RUNTIME_LOG_NUMBERS_H
#define HECATE_RUNTIME_LOG_NUMBERS_H

#include "runtime/train/trainer.h"

struct hrt_number_of {
    char tag[48];     // "balance/after"
    const char *help; // Meaning and unit.
    double value;
};

enum { HRT_NUMBERS_OF = 30 + 2 * HRT_NAMED_LOSSES };

// Those that the step has. `peak`: FLOP/s of all ranks; 0: not known. Returns how many there are.
int hrt_log_numbers_of(const struct hrt_step_report *step, double peak,
                       struct hrt_number_of out[HRT_NUMBERS_OF]);

#endif
