// Event files that TensorBoard reads: scalars of every step.
#ifndef HECATE_RUNTIME_LOG_TENSORBOARD_H
#define HECATE_RUNTIME_LOG_TENSORBOARD_H

#include <stdbool.h>
#include <stdio.h>

#include "runtime/base/error.h"
#include "runtime/train/trainer.h"

struct hrt_tensorboard {
    FILE *file; // NULL: nothing is written.
    char path[4096];
};

// Makes a new file in `folder`, which is made if it is not there; its parent is not. NULL: writes nothing.
bool hrt_log_tensorboard_open(struct hrt_tensorboard *board, const char *folder,
                              struct hrt_error *error);

// Writes and flushes the numbers of a step (numbers.h), and of each layer of `routers` (NULL: of none)
// "router_load/SET.LAYER", "router_entropy/..." and "router_dead/...". On false the file is closed, and later steps
// are not written.
bool hrt_log_tensorboard_step(struct hrt_tensorboard *board, const struct hrt_step_report *step,
                              const struct hrt_load_counts *routers, double peak,
                              struct hrt_error *error);

bool hrt_log_tensorboard_close(struct hrt_tensorboard *board, struct hrt_error *error);

#endif
