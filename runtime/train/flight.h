// A step in flight: the inputs that the device reads while the host goes on, and the results that it leaves for the
// host.
#ifndef HECATE_RUNTIME_TRAIN_FLIGHT_H
#define HECATE_RUNTIME_TRAIN_FLIGHT_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/clip/clip.h"
#include "runtime/base/error.h"
#include "runtime/params/state.h"
#include "runtime/train/load_counts.h"

// All of it HRT_OF_BOTH.
struct hrt_flight {
    int32_t *ids, *targets;     // [iterations][batch, positions]
    struct hrt_said said;       // The same of teacher entries, `entries` of each token.
    float *losses;              // [iterations][loss_count] as hrt_device_fetch_losses brings them.
    struct hk_clipped *clipped; // A copy of state->clipped.
    int64_t *count;             // As struct hrt_load_counts has them.
    int64_t iterations, tokens, counts, entries;
};

// Takes the memory of a step of `iterations` with `tokens` each, on the device of `state`. False: out of memory.
bool hrt_train_flight_create(struct hrt_flight *flight, struct hrt_state *state, int64_t iterations,
                             int64_t tokens, int64_t counts, struct hrt_error *error);

// Frees it; a zeroed one has nothing. The device must no longer work for it.
void hrt_train_flight_destroy(struct hrt_flight *flight, struct hrt_state *state);

// Teacher entries of the sequences of an iteration.
struct hrt_said hrt_train_flight_values(const struct hrt_flight *flight, int64_t iteration);

// Queues the copy of the device's counts to the host.
void hrt_train_flight_fetch_counts(const struct hrt_flight *flight, struct hrt_state *state,
                                   const struct hrt_load_counts *loads);

// The other way round: the sums over ranks in loads->count become the device's counts.
void hrt_train_flight_return_counts(const struct hrt_flight *flight, struct hrt_state *state,
                                    const struct hrt_load_counts *loads);

// Queues the copies that end a step: the counts, and the norm.
void hrt_train_flight_fetch(const struct hrt_flight *flight, struct hrt_state *state,
                            const struct hrt_load_counts *loads);

#endif
