// Tensors as they are now, for slow readers, while their owner goes on and changes them.
//
// A reader reads them in place. Before a thread changes a tensor, it calls hrt_snapshot_change, which copies the unread
// tensors, one by one; where the copies have no room, the thread waits for the readers.
#ifndef HECATE_RUNTIME_PARAMS_SNAPSHOT_H
#define HECATE_RUNTIME_PARAMS_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/params/copies.h"
#include "runtime/params/tensor.h"

struct hrt_snapshot;

// Makes a snapshot with room for `tensors` tensors of the program. `copies` is borrowed, and nobody else may use it
// meanwhile; NULL: there are no copies, and all changes wait. The caller destroys the snapshot. NULL: out of memory.
struct hrt_snapshot *hrt_snapshot_create(const struct hrt_program *program, size_t tensors,
                                         struct hrt_copies *copies);
void hrt_snapshot_destroy(struct hrt_snapshot *snapshot);

// Adds a tensor of `values`, a buffer laid out like the parameters, which stays where it is. It gets the next number,
// from 0.
void hrt_snapshot_add(struct hrt_snapshot *snapshot, const void *values,
                      const struct hrt_tensor *tensor);

// All have been added. From here on the functions below may be called by several threads.
void hrt_snapshot_seal(struct hrt_snapshot *snapshot);

// Elements of the parameters' buffer from `offset` on, or of the buffers like it, are about to change: returns when
// those of the snapshot are safe. For NULL at once.
void hrt_snapshot_change(struct hrt_snapshot *snapshot, int64_t offset, int64_t count);

// A reader's: elements of tensor `number` as hrt_tensor_read copies them; and that the tensor is not needed any more,
// which may be said again.
void hrt_snapshot_read(struct hrt_snapshot *snapshot, size_t number, int64_t first, int64_t count,
                       void *elements);
void hrt_snapshot_pass(struct hrt_snapshot *snapshot, size_t number);

#endif
