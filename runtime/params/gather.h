// Tensors come to one rank, one slice at a time.
#ifndef HECATE_RUNTIME_PARAMS_GATHER_H
#define HECATE_RUNTIME_PARAMS_GATHER_H

#include <stdbool.h>

#include "runtime/base/error.h"
#include "runtime/net/comm.h"
#include "runtime/params/slice.h"

struct hrt_gather {
    struct hrt_buffer buffer;
    struct hrt_comm *comm;  // NULL: everything is here.
    int to;                 // The rank that they come to; may change between tensors.
    void *room;             // Owned: where other ranks' tensors arrive on the host.
    struct hrt_step *step;  // Owned. [ranks]
    struct hrt_slice slice; // The current one; rank `to` can read it.
};

// Whether ranks have different tensors or parts in these buffers, so that files need a gather.
bool hrt_params_gathers(const struct hrt_buffer *buffer);

// Takes room where tensors come from others. `buffer` and `comm` are filled in. False: out of memory.
bool hrt_params_gather_open(struct hrt_gather *gather, struct hrt_error *error);
void hrt_params_gather_close(struct hrt_gather *gather);

// Whether this rank only sends.
bool hrt_params_gather_sends(const struct hrt_gather *gather);

// Begins a tensor, and drops the remaining slices of the one before. With `columns` it comes by
// columns (struct hrt_slice). With `comm` all ranks begin the same tensors in the same order, and
// take all slices of each.
void hrt_params_gather_tensor(struct hrt_gather *gather, const struct hrt_tensor *tensor,
                              int64_t columns);

// Brings the next slice to rank `to`, where it stays until the next call. Returns false after the last.
// Collective with `comm`.
bool hrt_params_gather_next(struct hrt_gather *gather);

#endif
