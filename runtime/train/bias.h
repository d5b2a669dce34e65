// Balancing without an auxiliary loss: the router's selection bias, moved once per step.
#ifndef HECATE_RUNTIME_TRAIN_BIAS_H
#define HECATE_RUNTIME_TRAIN_BIAS_H

#include "runtime/train/load_counts.h"
#include "runtime/train/state.h"

// bias[e] += rate * sign(mean load - load[e]), for every layer of every mixture that has a rate.
// `loads` are the step's counts over all ranks, so every rank moves its copy alike.
//
// Source: Wang et al. 2024, "Auxiliary-Loss-Free Load Balancing Strategy for Mixture-of-Experts",
// arXiv:2408.15664, algorithm 1.
void hrt_bias_update(struct hrt_state *state, const struct hrt_load_counts *loads);

#endif
