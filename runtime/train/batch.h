// The sequences of an iteration, and forward and backward of them, which a step of training asks for.
//
// On one rank, a device with separate memory runs the same work in every iteration: ids and targets come to one place
// first, and results that depend on the step, losses and counts, are fetched afterwards. So forward and backward are
// graphs (device/graph.h), unless losses of several iterations together are counted, whose kernels are told the
// iteration.
#ifndef HECATE_RUNTIME_TRAIN_BATCH_H
#define HECATE_RUNTIME_TRAIN_BATCH_H

#include "runtime/device/graph.h"
#include "runtime/train/flight.h"

struct hrt_batch {
    struct hrt_state *state;
    int64_t sequences;
    double scale, auxiliary_scale; // As forward takes them.
    int32_t *ids, *targets;        // [sequences, positions]: of the device, or the state's.
    struct hrt_said said;          // Their teacher entries; on the device, or the state's.
    double *sums;    // [HK_POLICY_SUMS], to which forward adds where the host computes; NULL: none.
    uint64_t *first; // On the device: place of the number of the first one. NULL: none.
    bool apart, repeats; // `repeats`: forward and backward may be graphs.
    struct hrt_graph forward, backward;
};

// Creates a batch of `sequences` sequences on the device of `state`, which is borrowed. The caller sets the scales.
// False: out of memory.
bool hrt_train_batch_create(struct hrt_batch *batch, struct hrt_state *state, int64_t sequences,
                            struct hrt_error *error);

// Frees the batch's memory; a zeroed one has none.
void hrt_train_batch_destroy(struct hrt_batch *batch);

// Queues the copy of an iteration's ids and targets to a device with separate memory.
void hrt_train_batch_bring(struct hrt_batch *batch, const struct hrt_flight *flight,
                           int64_t iteration);

// Runs forward, and backward of it, which adds to the state's gradients. Losses are NaN where they come later
// (hrt_device_losses). `repeats`: this one may be a graph. Collective in programs of several ranks.
struct hrt_losses hrt_train_batch_forward(struct hrt_batch *batch, bool repeats);
void hrt_train_batch_backward(struct hrt_batch *batch, bool repeats);

#endif
