// Transfers for the experts of one layer in one iteration: chunks by the planner's own schedules, rows by its
// quotas, on lanes.
#ifndef HECATE_PASSES_TIMELINE_TRAFFIC_H
#define HECATE_PASSES_TIMELINE_TRAFFIC_H

#include "passes/cost/chunks.h"
#include "passes/cost/rows.h"
#include "passes/timeline/lanes.h"
#include "runtime/plan/schedule.h"

// Clusters of more devices send sums of rows and chunks through ports, not single messages.
enum { HEC_PAIRS_MOST = 64 };

enum { HEC_PLANNED = 4 }; // Times whose plans are kept.

// One layer in one iteration.
struct hec_traffic {
    int64_t iteration; // -1: none yet.
    int64_t waves;
    double *load; // [devices] rows computed
    double *pair; // [devices][devices] rows from and to; NULL: sums alone
    double *once; // [devices][nodes] tokens from and to, where their rows cross once; else NULL
    double *sent, *got, *node_sent, *node_got; // Sums over waves.
    double imbalance, cross; // Largest load over the mean; part of rows that change node.
    int32_t replicas;
    // Transfers; -1: there is none. gather: before the gate, added: behind it, again: of both, for backward.
    int32_t exchange, gather, added, again, reduce;
};

// The plan of a layer at a time of the loads, with its rows, kept since assumed loads repeat.
struct hec_planned {
    int64_t at, changes; // -1: nothing yet; changes of owners before.
    int64_t since;       // The time of the loads that it was made for, before it was calibrated;
    int64_t left;        // and the iterations that were left then.
    bool calibrated;
    struct hpl_plan plan, before;
    struct hec_traffic traffic;
};

// Messages of each device in the phase at hand of an exchange through relays, and in the one before.
struct hec_phases {
    int32_t now, room;
    int32_t *message[2], *count[2]; // [devices][room], [devices]
};

// One set of experts. The caller zeroes it and sets the fields up to `movement`.
struct hec_mover {
    struct hec_lanes *lanes;
    const struct hec_set_cost *cost;
    int32_t segments;
    bool sums;          // Rows and chunks are sums through ports, no single messages.
    int64_t iterations; // In one step.
    int64_t begins;     // The time of the loads that the first iteration has.
    int32_t *owner;     // [layers][experts] the scene's, which change; NULL: they do not.
    struct hec_scene scene;
    struct hpl_movement movement;
    struct hec_stage stage;
    struct hec_rows rows;
    struct hec_chunks chunks;
    struct hpl_plan whole, added; // A plan with owners; calibration's additions.
    struct hec_planned *planned;  // [layers of the scene][HEC_PLANNED]
    struct hpl_plan *kept; // [layers of the scene] the last plans, where replicas live for a step.
    int64_t changes;       // The changes of owners so far.
    struct hpl_schedule schedule;
    struct hpl_work work;
    int32_t *arrival; // [segments][experts][devices] message that brings it, + 1
    int32_t *last;   // [devices][devices] the last message of the transfer between two devices, + 1
    int32_t *parent; // [schedule.capacity]
    // owners.c
    struct hpl_plan *placed; // [layers] of a periodic policy
    double *states;          // [devices][devices] bytes that new owners and copies get
    int32_t *next;           // [layers][experts]
    double *in, *out, *node_in, *node_out; // [devices], [nodes] bytes
    struct hec_phases phases;
};

// Whether messages are single ones.
static inline bool hec_has_pairs(const struct hec_mover *mover) {
    return !mover->sums;
}

// Whether replicas live for a step.
static inline bool hec_lasts(const struct hec_mover *mover) {
    return mover->movement.lifetime == HPL_LIFETIME_STEP;
}

// Scene and movement of `mover` are set; it keeps a stage until hec_mover_free.
void hec_mover_begin(struct hec_mover *mover);
void hec_mover_free(struct hec_mover *mover);

// Arrays of a layer's traffic, of the mover's memory.
void hec_traffic_take(struct hec_mover *mover, struct hec_traffic *traffic);

// Plans the layer for an iteration, with the loads of that time, and makes its transfers but for rows. False: the
// planner refuses.
bool hec_traffic_plan(struct hec_mover *mover, int32_t layer, int64_t iteration,
                      struct hec_traffic *traffic);

// Rows that the device computes in a wave.
double hec_traffic_rows(const struct hec_mover *mover, const struct hec_traffic *traffic,
                        int32_t device, int64_t wave);

// A transfer of a wave's rows to where they are computed or, `back`, to where they came from.
int32_t hec_traffic_wave(struct hec_mover *mover, const struct hec_traffic *traffic, int32_t layer,
                         int64_t wave, const char *what, bool back);

// ---- relay.c: rows that cross once to a node

void hec_relay_begin(struct hec_mover *mover);

// Adds the messages of a wave's rows to `transfer`, or back.
void hec_relay_wave(struct hec_mover *mover, const struct hec_traffic *traffic, int64_t wave,
                    int32_t transfer, bool back);

// Rows that cross, and those of relays, in the sums of a layer's traffic, of `all` rows.
void hec_relay_sums(const struct hec_mover *mover, struct hec_traffic *traffic, double all);

// ---- movement.c: chunks, by the collective that the policy uses

// Takes the arrays that the function below needs.
void hec_movement_begin(struct hec_mover *mover);

// Makes the transfers of chunks of the plan at hand, for traffic->iteration. False: the planner refuses.
bool hec_movement_add(struct hec_mover *mover, int32_t layer, struct hec_traffic *traffic);

#endif
