// Tensors come to rank 0, one at a time.
#ifndef HECATE_RUNTIME_PARAMS_GATHER_H
#define HECATE_RUNTIME_PARAMS_GATHER_H

#include <stdbool.h>

#include "runtime/base/error.h"
#include "runtime/net/comm.h"
#include "runtime/params/placement.h"
#include "runtime/params/tensor.h"

struct hrt_gather {
    const struct hrt_placement *placement;
    const void *params;
    struct hrt_comm *comm; // NULL: everything is here.
    void *room;            // Owned: for one tensor of another rank.
};

// Takes room where tensors come from others. The fields but `room` are filled in. False: out of memory.
bool hrt_gather_open(struct hrt_gather *gather, struct hrt_error *error);
void hrt_gather_close(struct hrt_gather *gather);

// Whether this rank only sends.
bool hrt_gather_sends(const struct hrt_gather *gather);

// Where the tensor's first element lies, until the next one comes, on rank 0. With `comm` all ranks ask for the same
// tensors in the same order.
const void *hrt_gather_tensor(struct hrt_gather *gather, const struct hrt_tensor *tensor);

#endif
