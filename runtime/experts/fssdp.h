// Experts that move: in every iteration their owners send copies of their parameters to other ranks,
// which compute with them and send gradients back (fully sharded, sparsely materialized experts).
//
// A layer of a set, as emitted code runs it (f: the movement, s, i: the set and the layer):
//
//   hrt_experts_plan(f, s, i)                     chooses the holders of experts: the same on every rank
//   hrt_experts_materialize(f, s, i, false)       parameters start to move, behind attention
//   hrt_experts_route(...)                        counts start to travel
//   hrt_experts_await_counts(...)                 exact counts
//   hrt_experts_calibrate(f, s, i)                more replicas, where the counts say that it pays
//   hrt_experts_await(f, s, i)                    the chunks may be read, through the model's tables
//   waves, and in the first one, behind its rows:
//   hrt_experts_prefetch(f, s, i + 1)             the next layer's plan and parameters, behind the experts
//   hrt_experts_release_params(f, s, i)           only when re-materializing
//
//   hrt_experts_materialize(f, s, i, true)        only when re-materializing, then hrt_experts_await: the same plan
//   waves of backward
//   hrt_experts_reduce(f, s, i)                   gradients start to move home
//   hrt_experts_release_params(f, s, i)
//   hrt_experts_release_grads(f, s, i)            the owner has the sum; slots of gradients are free. At the
//                                         latest before the layer after the next one needs them
//
// Policies that plan on exact counts have hrt_experts_plan and hrt_experts_materialize behind hrt_experts_await_counts.
// All of it is collective: every rank makes the same calls in the same order. Nothing is allocated.
//
// Parameters and gradients of a replica lie in slots: those of parameters, when re-materializing, serve
// all layers of a set, those of gradients every other one. A gradient is the owner's own, then partial sums added
// in the order of the transfer schedule: the same plan gives the same bits.
//
// A plan or transfer that cannot be made (a lost peer, ranks that plan differently) ends the job with
// one message.
#ifndef HECATE_RUNTIME_EXPERTS_FSSDP_H
#define HECATE_RUNTIME_EXPERTS_FSSDP_H

#include <stdbool.h>
#include <stdint.h>

struct hrt_fssdp;

// Whether this iteration is the first, or the last, of its step. Where replicas live for a step (hpl_movement.lifetime)
// emitted code makes the calls that plan and materialize in the first iteration alone, those that reduce and release in
// the last; calibration and awaits are for each. With re-materialization parameters come and go in each, too. The
// gradient of a replica is then the sum over iterations, in their order.
bool hrt_experts_step_begins(const struct hrt_fssdp *fssdp);
bool hrt_experts_step_ends(const struct hrt_fssdp *fssdp);

// Makes the layer's plan: from the forecast, or with policies that want them from the counts of the
// layer's last route. Until then, before the first iteration, owners hold their experts alone unless
// the program has a forecast.
void hrt_experts_plan(struct hrt_fssdp *fssdp, int set, int64_t layer);

// Starts to bring the plan's replicas their parameters. `rematerialize`: of the plan as calibrated. A layer
// that the set does not have: nothing.
void hrt_experts_materialize(struct hrt_fssdp *fssdp, int set, int64_t layer, bool rematerialize);

// Does both of these for a layer before its turn, once: its own hrt_experts_plan and hrt_experts_materialize then find
// it done. Only where every layer has slots of its own, and not with policies that plan on exact counts.
void hrt_experts_prefetch(struct hrt_fssdp *fssdp, int set, int64_t layer);

// Adds replicas by the counts of the route, if the policy can and they pay, and starts to bring them.
void hrt_experts_calibrate(struct hrt_fssdp *fssdp, int set, int64_t layer);

// Returns when the layer's chunks are here, and points the model's tables at them: the n-th expert
// that this rank holds, by number.
void hrt_experts_await(struct hrt_fssdp *fssdp, int set, int64_t layer);

// Starts to add the replicas' gradients to their owners'.
void hrt_experts_reduce(struct hrt_fssdp *fssdp, int set, int64_t layer);

// Gives the replicas' slots back: parameters once they have been passed on, gradients, zeroed, once
// they have been added. A layer that the set does not have: nothing.
void hrt_experts_release_params(struct hrt_fssdp *fssdp, int set, int64_t layer);
void hrt_experts_release_grads(struct hrt_fssdp *fssdp, int set, int64_t layer);

#endif
