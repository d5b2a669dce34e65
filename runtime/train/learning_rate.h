// Learning rate over the steps of a run.
#ifndef HECATE_RUNTIME_TRAIN_LEARNING_RATE_H
#define HECATE_RUNTIME_TRAIN_LEARNING_RATE_H

#include <stdint.h>

#include "runtime/config/config.h"

// The learning rate of step `step`, counted from 0. The first `warmup` steps rise linearly and
// reach lr at their end; the first one behind them has lr, too, and the last one of the run final * lr,
// to which cosine or linear falls; wsd does so in the last `falls` of all steps; constant stays.
double hrt_train_learning_rate(const struct hrt_config *config, int64_t step);

#endif
