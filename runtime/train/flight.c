// Memory of steps in flight.
#include "runtime/train/flight.h"

#include <stddef.h>
#include <string.h>

struct part {
    void **at;
    size_t bytes;
};

enum { PARTS = 7 };

static void find_parts(struct hrt_flight *flight, int losses, struct part part[PARTS]) {
    const size_t iterations = (size_t)flight->iterations;
    const size_t loss_bytes = iterations * (size_t)losses * sizeof *flight->losses;
    const size_t ids = iterations * (size_t)flight->tokens * sizeof *flight->ids;
    part[0] = (struct part){(void **)&flight->ids, ids};
    part[1] = (struct part){(void **)&flight->targets, ids};
    part[2] = (struct part){(void **)&flight->losses, loss_bytes};
    part[3] = (struct part){(void **)&flight->clipped, sizeof *flight->clipped};
    part[4] =
        (struct part){(void **)&flight->count, (size_t)flight->counts * sizeof *flight->count};
    part[5] = (struct part){(void **)&flight->said.ids, ids * (size_t)flight->entries};
    part[6] = (struct part){(void **)&flight->said.log_probs, ids * (size_t)flight->entries};
}

bool hrt_train_flight_create(struct hrt_flight *flight, struct hrt_state *state, int64_t iterations,
                             int64_t tokens, int64_t counts, struct hrt_error *error) {
    struct part part[PARTS];
    *flight = (struct hrt_flight){.iterations = iterations,
                                  .tokens = tokens,
                                  .counts = counts,
                                  .entries = state->teacher.count};
    find_parts(flight, state->device.loss_count, part);
    for (int i = 0; i < PARTS; i++) {
        if (!part[i].bytes) continue; // There is no teacher.
        if (!hrt_params_state_take(state, HRT_OF_BOTH, part[i].at, part[i].bytes,
                                   "a step's batches", error)) {
            hrt_train_flight_destroy(flight, state);
            return false;
        }
    }
    return true;
}

void hrt_train_flight_destroy(struct hrt_flight *flight, struct hrt_state *state) {
    struct part part[PARTS];
    find_parts(flight, state->device.loss_count, part);
    for (int i = 0; i < PARTS; i++) {
        struct hrt_device *device = &state->device;
        if (*part[i].at) device->backend->give(device, HRT_OF_BOTH, *part[i].at, part[i].bytes);
    }
    *flight = (struct hrt_flight){0};
}

struct hrt_said hrt_train_flight_values(const struct hrt_flight *flight, int64_t iteration) {
    const int64_t first = iteration * flight->tokens * flight->entries;
    if (!flight->entries) return (struct hrt_said){0};
    return (struct hrt_said){flight->said.ids + first, flight->said.log_probs + first};
}

void hrt_train_flight_fetch_counts(const struct hrt_flight *flight, struct hrt_state *state,
                                   const struct hrt_load_counts *loads) {
    hrt_device_fetch(&state->device, flight->count, loads->counted,
                     (size_t)flight->counts * sizeof *flight->count);
}

void hrt_train_flight_return_counts(const struct hrt_flight *flight, struct hrt_state *state,
                                    const struct hrt_load_counts *loads) {
    const size_t bytes = (size_t)flight->counts * sizeof *flight->count;
    memcpy(flight->count, loads->count, bytes);
    hrt_device_fetch(&state->device, loads->counted, flight->count, bytes);
}

void hrt_train_flight_fetch(const struct hrt_flight *flight, struct hrt_state *state,
                            const struct hrt_load_counts *loads) {
    hrt_device_fetch(&state->device, flight->clipped, state->clipped, sizeof *flight->clipped);
    hrt_train_flight_fetch_counts(flight, state, loads);
}
