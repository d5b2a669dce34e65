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
    uint64_t *first;     // On the device: place of the number of the first one. NULL: none.
    bool apart, repeats; // `repeats`: forward and backward may be graphs.
    struct hrt_graph forward, backward;
};

// For so many sequences on the device of `state`, which is borrowed. Scales are the caller's to set.
bool hrt_batch_create(struct hrt_batch *batch, struct hrt_state *state, int64_t sequences,
                      struct hrt_error *error);

// Also of a zeroed one.
void hrt_batch_destroy(struct hrt_batch *batch);

// Asks a device with separate memory to bring an iteration's ids and targets.
void hrt_batch_bring(struct hrt_batch *batch, const struct hrt_flight *flight, int64_t iteration);

// The losses of a forward; where they come later (hrt_device_losses) not a number. `repeats`: this one may be a graph.
struct hrt_losses hrt_batch_forward(struct hrt_batch *batch, bool repeats);
void hrt_batch_backward(struct hrt_batch *batch, bool repeats);

#endif
