// Balancing without an auxiliary loss: the router's selection bias, moved once per step.
#ifndef HECATE_RUNTIME_TRAIN_BIAS_H
#define HECATE_RUNTIME_TRAIN_BIAS_H

#include "runtime/params/state.h"
#include "runtime/train/load_counts.h"

// bias[e] += rate * sign(mean load - load[e]), for every layer of every mixture that has a rate.
// `loads` are the step's counts over all ranks, so every rank moves its copy alike, without a message. A device with
// separate memory uses loads->counted, in queued work that state->clipped may stop. kernels/select_bias
void hrt_train_bias_update(struct hrt_state *state, const struct hrt_load_counts *loads);

#endif
