// Tokens per expert, counted over a step.
#ifndef HECATE_RUNTIME_TRAIN_LOAD_COUNTS_H
#define HECATE_RUNTIME_TRAIN_LOAD_COUNTS_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/error.h"
#include "runtime/device/device.h"
#include "runtime/program.h"

struct hrt_load_counts {
    const struct hrt_program *program;
    int64_t *count; // Counts of program->load[0], [layers][experts]; then of load[1]; ...
    int64_t counts;
    struct hrt_device *device; // NULL: the host counts.
    int64_t *counted;          // HRT_OF_DEVICE: as `count`, the device's sums since the last clear.
    bool empty;                // Nothing has been added.
};

// Creates zeroed counts. `device`, which is borrowed, is that of the arenas. False: out of memory.
bool hrt_train_load_counts_create(struct hrt_load_counts *loads, const struct hrt_program *program,
                                  struct hrt_device *device, struct hrt_error *error);
void hrt_train_load_counts_destroy(struct hrt_load_counts *loads);

void hrt_train_load_counts_clear(struct hrt_load_counts *loads);

// Adds the counts that the last forward left in the arena: to `count`, or, in queued work of a device with separate
// memory, to `counted`.
void hrt_train_load_counts_add(struct hrt_load_counts *loads, const void *arena);

// Copies the sums to `count`. Waits for a device with separate memory.
void hrt_train_load_counts_collect(struct hrt_load_counts *loads);

// The counts of load `index`, [layers][experts].
const int64_t *hrt_train_load_counts_of(const struct hrt_load_counts *loads, int index);

#endif
