// Tensors as they are now, for slow readers, while their owner goes on and changes them.
//
// On the host a reader reads them in place. Before a thread changes a tensor, it calls
// hrt_params_snapshot_change, which copies the unread tensors, one by one; where the copies have no room,
// the thread waits for the readers.
//
// From a device slices come to the copies through the staging buffer, in the readers' order, and
// readers wait for them. As many as the copies have room for come at once, and the rest before the
// first change.
#ifndef HECATE_RUNTIME_PARAMS_SNAPSHOT_H
#define HECATE_RUNTIME_PARAMS_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/params/copies.h"
#include "runtime/params/slice.h"

struct hrt_snapshot;

// Makes an empty snapshot. `copies` is borrowed, and nobody else may use it meanwhile; NULL: there
// are no copies, and all changes wait. The caller destroys the snapshot. NULL: out of memory.
struct hrt_snapshot *hrt_params_snapshot_create(const struct hrt_program *program,
                                                struct hrt_copies *copies);
void hrt_params_snapshot_destroy(struct hrt_snapshot *snapshot);

// Adds a tensor of a buffer, whose memory is borrowed. Its slices get the next numbers, from 0. All
// tensors of a buffer are added together, in the order of its reader. On a device each buffer has a
// reader of its own. All buffers are of the host, or of one device. False: out of memory.
bool hrt_params_snapshot_add(struct hrt_snapshot *snapshot, const struct hrt_buffer *buffer,
                             const struct hrt_tensor *tensor);

// Adds a slice that was gathered (params/gather.h) for this rank's file, and copies it at once. False: out of memory.
bool hrt_params_snapshot_add_gathered(struct hrt_snapshot *snapshot,
                                      const struct hrt_buffer *buffer,
                                      const struct hrt_slice *slice);

// How many slices have been added.
size_t hrt_params_snapshot_slices(const struct hrt_snapshot *snapshot);

// Ends the adding. From here on several threads may call the readers' functions, and one thread
// those of the owner. False: out of memory.
bool hrt_params_snapshot_seal(struct hrt_snapshot *snapshot);

// Elements of the parameters' buffer from `offset` on, or of the buffers like it, are about to change: returns when
// those of the snapshot are safe. For NULL at once.
void hrt_params_snapshot_change(struct hrt_snapshot *snapshot, int64_t offset, int64_t count);

// Brings slices of a device: as many as the copies have room for, or all, which waits for the
// readers. Call it for all before you wait for readers. Does nothing on the host.
void hrt_params_snapshot_bring(struct hrt_snapshot *snapshot, bool all);

// A reader calls these. The first gives the elements of its tensor that a slice has. The second waits
// until the slice is here and copies some of them, row major; it returns false if readers are to
// stop. The third says that the slice is not needed any more; it may be called again.
void hrt_params_snapshot_slice(const struct hrt_snapshot *snapshot, size_t number, int64_t *first,
                               int64_t *count);
bool hrt_params_snapshot_read(struct hrt_snapshot *snapshot, size_t number, int64_t first,
                              int64_t count, void *elements);
void hrt_params_snapshot_pass(struct hrt_snapshot *snapshot, size_t number);

// Stops the readers. Any thread may call it.
void hrt_params_snapshot_stop(struct hrt_snapshot *snapshot);

#endif
