// The memory of a run, and its places: known before any of it is taken.
#ifndef HECATE_RUNTIME_TRAIN_MEMORY_H
#define HECATE_RUNTIME_TRAIN_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/error.h"
#include "runtime/params/state.h"

// Bytes of the scratch of hrt_train_grad_norm.
size_t hrt_train_memory_sums_bytes(const struct hrt_program *program);

// The place of memory. A program whose device has no separate memory has all of it on the host.
enum hrt_memory_place { HRT_ON_HOST, HRT_ON_DEVICE, HRT_PINNED };

enum { HRT_MEMORY_LINES = 15 };

struct hrt_memory_line {
    const char *what;
    enum hrt_memory_place place;
    bool
        opened; // Taken as the device is opened, and ranks meet on it: before hrt_train_memory_check.
    double bytes;
};

// Lists the memory of a rank of the program, the fullest one where they differ; lines without bytes are left out.
// Returns how many there are. Without training there are no states of the optimizer.
int hrt_train_memory_list(const struct hrt_program *program, enum hrt_training training,
                          struct hrt_memory_line line[HRT_MEMORY_LINES]);

// Bytes of the host that a rank takes at most, besides, while it writes a checkpoint, where copies may take `copies`
// bytes.
double hrt_train_memory_saving(const struct hrt_program *program, int64_t copies);

// Whether the device has free memory for all that is still to be taken. The error lists each need, and the settings
// that would need less. True on a device without separate memory, whose memory is taken as it is touched.
bool hrt_train_memory_check(struct hrt_device *device, const struct hrt_program *program,
                            enum hrt_training training, struct hrt_error *error);

#endif
