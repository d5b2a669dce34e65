// episode.h: a policy over iterations. From counts to a forecast, to a plan, to a larger one behind the
// gate, to quotas; and now and then to new owners. Programs, the compiler's cost model and
// hecate-replay run policies through it alone: they differ in the source of counts, and in the use of
// plans.
//
// Pure: numbers in, numbers out. The same episode on the same counts gives the same plans.
#ifndef HECATE_RUNTIME_PLAN_EPISODE_H
#define HECATE_RUNTIME_PLAN_EPISODE_H

#include "runtime/plan/calibrate.h"
#include "runtime/plan/movement.h"
#include "runtime/plan/policy.h"

#ifdef __cplusplus
extern "C" {
#endif

// A policy's budget, and the costs.
struct hpl_terms {
    struct hpl_budget budget;
    struct hpl_costs costs;
};

// Counts that `layer` had `back` iterations ago, 1: in the last one; [devices][experts], valid until the
// next call. NULL: there are none as old. 0, only asked for by an episode whose routes are `known`: the mean of
// the iterations that the layer's next plan serves; NULL: they are not known now.
typedef const uint32_t *hpl_counts_fn(void *context, int32_t layer, int32_t back);

struct hpl_episode {
    // Given by the caller; pointers are borrowed.
    const struct hpl_topology *topology;
    int32_t layers, experts;
    hpl_counts_fn *counts;
    void *context;
    const uint32_t
        *given; // [layers][devices][experts] the first iteration's forecast; NULL: it has none.
    const int32_t *owner; // [layers][experts] owners of the chunks now.

    // The terms that it plans with: hpl_episode_move, or the caller's.
    const struct hpl_policy *policy;
    enum hpl_split split;
    enum hpl_calibrates calibrates; // Where the policy can.
    bool known;                     // Plans are made from the counts to come.
    int64_t serves;                 // Iterations that a plan serves.
    int32_t replica_rows;           // Rows that pay for a replica, where routes are known.
    int32_t window;                 // Iterations whose mean is the forecast.
    struct hpl_terms plan[2];       // Before the gate: of the first layer, of others.
    struct hpl_terms late[2];       // Behind it.

    // Its own.
    int32_t *began; // [layers][experts] owners at the beginning: where periodic policies start from
    uint32_t *forecast; // [devices][experts]
    uint64_t *sum;      // [devices][experts]
    int64_t *share; // [holders] rows of each holder of the plan at hand, where the split has shares
    int64_t *rows;  // [layers][experts]
    struct hpl_plan spare;
    int32_t shared;       // The layer whose shares calibration has found; -1: none.
    struct hpl_work work; // For any function of the planner, between calls.
};

// Bytes that hpl_episode_begin takes. `holders`: of one layer, at most.
size_t hpl_episode_bytes(const struct hpl_episode *episode, int32_t holders);

// Takes the episode's own arrays, for good. Topology, sizes, policy and owners are set. HPL_NO_ROOM.
enum hpl_status hpl_episode_begin(struct hpl_episode *episode, struct hpl_work memory,
                                  int32_t holders);

// Sets the terms of an episode, whose `experts` are set: all of them follow from how experts move. Before the gate a
// replica that balance does not need has to pay by rows, or is left to calibration. False: there is no such policy.
bool hpl_episode_move(struct hpl_episode *episode, const struct hpl_movement *movement,
                      const struct hpl_sizes *sizes);

// Whether plans grow behind the gate.
bool hpl_episode_calibrates(const struct hpl_episode *episode);

// Whether ranks decide anything by the exact counts of an iteration: plans behind the gate, larger plans, shares.
bool hpl_episode_decides(const struct hpl_episode *episode);

// Sets episode->forecast: the mean of the last counts, rounded to the nearest; where there are none the
// given ones, or zeros. False: zeros.
bool hpl_episode_forecast(struct hpl_episode *episode, int32_t layer);

// Makes the layer's plan: from counts to come where they are known, else from the forecast, owners alone where there is
// none, or from `exact`
// [devices][experts] with policies that plan behind the gate; others may get NULL. A placement for
// many iterations stays as it is. Errors as hpl_place.
enum hpl_status hpl_episode_plan(struct hpl_episode *episode, int32_t layer, const uint32_t *exact,
                                 struct hpl_plan *placed);

// Adds replicas to the layer's plan where exact counts say that it pays. They serve `left` iterations, this one
// included: 1, or those that are left of the step for which replicas live. `result` gets the alternatives; all 0 where
// nothing calibrates. Errors as hpl_calibrate.
enum hpl_status hpl_episode_calibrate(struct hpl_episode *episode, int32_t layer, int64_t left,
                                      const uint32_t *exact, struct hpl_plan *placed,
                                      struct hpl_calibration *result);

// Prepares hpl_episode_route of the layer's plan: the shares of its holders. Errors as hpl_share.
enum hpl_status hpl_episode_divide(struct hpl_episode *episode, int32_t layer,
                                   const uint32_t *exact, const struct hpl_plan *placed);

// The rows of `rank` that go to each holder of the plan, after hpl_episode_divide of it. Errors as
// hpl_route.
enum hpl_status hpl_episode_route(struct hpl_episode *episode, const uint32_t *exact,
                                  const struct hpl_plan *placed, int32_t rank, uint32_t *rows);

// The part of all quotas that `rank` has to know, after hpl_episode_divide. Errors as hpl_route.
enum hpl_status hpl_episode_route_part(struct hpl_episode *episode, const uint32_t *exact,
                                       const struct hpl_plan *placed, int32_t rank,
                                       const struct hpl_part *part);

// ---- between steps

// Places a layer of a periodic policy anew, from the present placement and the forecast. Errors as hpl_place.
enum hpl_status hpl_episode_place_anew(struct hpl_episode *episode, int32_t layer,
                                       struct hpl_plan *placed);

// The owners of a layer placed anew: as they were where they hold their expert still, else that holder
// which owns fewest chunks. `owned` [devices] counts them, from layer to layer; next [experts].
void hpl_episode_follow(const struct hpl_episode *episode, int32_t layer,
                        const struct hpl_plan *placed, int64_t *owned, int32_t *next);

// New owners of all layers after the forecasts, with policies of ours; `next` [layers][experts] are those
// of now with others, or where a layer has no forecast. Errors as hpl_reshard_near.
enum hpl_status hpl_episode_spread(struct hpl_episode *episode, int32_t *next);

// Whether the policy can place a layer of which nobody has rows. Errors as hpl_problem_check, hpl_place.
enum hpl_status hpl_episode_try(struct hpl_episode *episode);

#ifdef __cplusplus
}
#endif
#endif
