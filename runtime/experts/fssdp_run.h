// Moving experts for the trainer: their memory, iterations, and transfers.
#ifndef HECATE_RUNTIME_EXPERTS_FSSDP_RUN_H
#define HECATE_RUNTIME_EXPERTS_FSSDP_RUN_H

#include <stdbool.h>
#include <stddef.h>

#include "runtime/base/error.h"
#include "runtime/params/state.h"

struct hrt_fssdp;

// Creates the movement of experts of the state's program (program->movement), whose exchange of rows,
// state->experts, exists. The state and its ranks are borrowed; the caller destroys it. Not collective. False: no
// such policy, a budget with which it cannot place every expert, or no memory.
bool hrt_experts_fssdp_create(struct hrt_fssdp **fssdp, struct hrt_state *state,
                              struct hrt_error *error);
void hrt_experts_fssdp_destroy(struct hrt_fssdp *fssdp);

// Bytes of replicas and of chunks in flight that a rank takes at most.
size_t hrt_experts_fssdp_bytes(const struct hrt_program *program);

// Holders that the experts of one layer have in all, at most, under any plan.
int64_t hrt_experts_fssdp_holders(const struct hrt_program *program, int set);

// Transfers of experts to and from this rank: sparse collectives only, rows not counted.
struct hrt_moved {
    double seconds;        // Time of transfers, from when all senders to this rank had begun.
    double exposed;        // Waits of this rank for them, once all had begun; and
    double late;           // Waits before: for ranks that had not begun, for any reason.
    double bytes, crossed; // Received; from other nodes.
    double gradients;      // Those of gradients, of the bytes.
};

// Sums since the last call. Not collective.
struct hrt_moved hrt_experts_fssdp_moved(struct hrt_fssdp *fssdp);

// Transfers of one layer, and the results of calibration on its exact counts.
struct hrt_moved_layer {
    double exposed; // As above; of this rank.
    int64_t weighed,
        taken;          // Calibrations that were weighed, and those whose replicas were worth it.
    double gain, price; // Seconds that all that were taken have been expected to save, and to take.
};

// Sums since the last call. Not collective.
struct hrt_moved_layer hrt_experts_fssdp_moved_layer(struct hrt_fssdp *fssdp, int set,
                                                     int64_t layer);

// Memory for this rank's mean counts of rows to come, [sets][layers][experts]: fill it before
// hrt_experts_fssdp_foresee. NULL where the program plans by forecasts.
uint32_t *hrt_experts_fssdp_known(struct hrt_fssdp *fssdp);

// Tells all ranks the counts of each, from which the next plans of all layers are made: counts of the iteration
// that follows, or of the step where replicas live for one. Call it before hrt_experts_fssdp_begin. Collective.
void hrt_experts_fssdp_foresee(struct hrt_fssdp *fssdp);

// Begins iteration `iteration` of a step's `iterations`, forward and backward, or with `training` false a forward
// alone, of an evaluation or for a sample, which is a step of its own: it uses a plan and changes nothing that lasts.
void hrt_experts_fssdp_begin(struct hrt_fssdp *fssdp, bool training, int64_t iteration,
                             int64_t iterations);

#endif
