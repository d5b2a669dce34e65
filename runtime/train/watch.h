// Numbers of a step for observers: the time of each rank, and the placement's effect on the
// loads of each layer. Nothing that is computed depends on it.
#ifndef HECATE_RUNTIME_TRAIN_WATCH_H
#define HECATE_RUNTIME_TRAIN_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/policy/policy.h"
#include "runtime/base/error.h"
#include "runtime/experts/fssdp_run.h"
#include "runtime/net/comm.h"
#include "runtime/params/state.h"
#include "runtime/plan/types.h"
#include "runtime/train/load_counts.h"

// Numbers of one rank. Times are those from where ranks last summed up their losses to where they do so now,
// evaluations and checkpoints not counted.
struct hrt_rank_watch {
    double seconds, waited; // `waited`: the part in which the host waited for other ranks.
    double memory;          // Bytes that the process has had at most.
    struct hrt_moved moved;
};

// Numbers of one layer of experts that ranks own, all iterations of the step together.
struct hrt_layer_watch {
    int64_t *before,
        *after;           // [ranks] rows: where owners compute them all; where they were computed.
    int32_t *owner;       // [experts]
    struct hpl_plan plan; // Computing ranks in the last iteration.
    int64_t waves, dropped;       // At most; rows.
    struct hrt_moved_layer moved; // The mean of the ranks.
};

// All layers in one number each; 0 where ranks own no experts.
struct hrt_watch_sums {
    double before, after; // Rows of the fullest rank over the mean: the worst layer's.
    int64_t replicas;     // In all layers, owners not counted.
    double waited;        // Share of the ranks' time in which they waited for others.
    int slowest;          // The rank that waited least; -1: there is but one.
    double memory;        // Bytes of the fullest rank.
};

struct hrt_watch {
    struct hrt_state *state;
    struct hrt_comm *comm;
    double *
        told; // The numbers that ranks sum: the caller's, [ranks] struct hrt_rank_watch, [layers] seconds.
    int64_t numbers;
    struct hrt_rank_watch *rank; // [ranks], part of `told`.
    int64_t
        layers; // Layers of all loads of the program, in their order; 0: experts have no owners.
    struct hrt_layer_watch *layer;     // [layers]
    int64_t begun, gathered;           // When; hk_clock.
    int64_t begun_wait, gathered_wait; // Waits until then.
    int64_t late, late_wait; // Late transfers of the step before, after it had been gathered.
};

enum {
    HRT_WATCH_POLICY = HRT_LOSSES_MOST + 1, // Behind the losses, and ranks that failed.
    HRT_WATCH_OWN = HRT_WATCH_POLICY + HK_POLICY_SUMS
}; // Numbers that the caller lets the ranks sum on the way.

// For programs of one rank, too. State and ranks are borrowed until hrt_train_watch_destroy. False: out of memory.
bool hrt_train_watch_create(struct hrt_watch *watch, struct hrt_state *state, struct hrt_comm *comm,
                            struct hrt_error *error);

// Frees it; a zeroed one has nothing.
void hrt_train_watch_destroy(struct hrt_watch *watch);

// A step begins, and ends.
void hrt_train_watch_begin(struct hrt_watch *watch);
void hrt_train_watch_end(struct hrt_watch *watch);

// Gathers the numbers of all ranks, and on the way sums `own` over them. Collective.
void hrt_train_watch_gather(struct hrt_watch *watch, double own[HRT_WATCH_OWN]);

// Fills in the layers' numbers from `loads`, those of all ranks; after hrt_train_watch_gather, before owners change.
void hrt_train_watch_layers(struct hrt_watch *watch, const struct hrt_load_counts *loads);

struct hrt_watch_sums hrt_train_watch_sums(const struct hrt_watch *watch);

// The mean of the ranks.
struct hrt_moved hrt_train_watch_moved(const struct hrt_watch *watch);

#endif
