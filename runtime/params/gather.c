// Sends and receives, on the lane of saves.
#include "runtime/params/gather.h"

#include <stdlib.h>

#include "runtime/net/transport.h"

// The largest tensor, stored.
static size_t room_bytes(const struct hrt_program *program) {
    int64_t most = 1;
    for (int i = 0; i < program->params; i++) {
        if (program->param[i].elements > most) most = program->param[i].elements;
    }
    return (size_t)(most * hrt_element_bytes(program->precision));
}

bool hrt_gather_sends(const struct hrt_gather *gather) {
    return gather->comm && gather->comm->rank > 0;
}

bool hrt_gather_open(struct hrt_gather *gather, struct hrt_error *error) {
    if (!gather->comm || hrt_gather_sends(gather)) return true;
    gather->room = malloc(room_bytes(gather->placement->program));
    return gather->room || hrt_fail(error, "out of memory");
}

void hrt_gather_close(struct hrt_gather *gather) {
    free(gather->room);
    gather->room = NULL;
}

const void *hrt_gather_tensor(struct hrt_gather *gather, const struct hrt_tensor *tensor) {
    struct hrt_comm *comm = gather->comm;
    const size_t element = (size_t)hrt_element_bytes(gather->placement->program->precision);
    const size_t bytes = (size_t)tensor->param->elements * element;
    const char *own = (const char *)gather->params + (size_t)tensor->offset * element;
    const int owner = comm ? hrt_tensor_rank(gather->placement, tensor) : 0;
    struct hrt_step step;
    struct hrt_steps steps = {.step = &step, .room = 1};
    if (owner == 0) return own;
    if (comm->rank == 0) {
        hrt_steps_receive(&steps, owner, gather->room, bytes, -1);
    } else if (comm->rank == owner) {
        hrt_steps_send(&steps, 0, own, bytes, -1);
    } else {
        return NULL;
    }
    hrt_join(comm, hrt_submit(comm, HRT_LANE_SAVE, &steps), "the parameters to be saved");
    return gather->room;
}
