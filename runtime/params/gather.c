// Sends and receives, on the lane of saves.
#include "runtime/params/gather.h"

#include <stdlib.h>

#include "runtime/net/transport.h"

// Bytes of the largest tensor of an expert, as it is stored.
static size_t room_bytes(const struct hrt_program *program) {
    int64_t most = 1;
    for (int i = 0; i < program->params; i++) {
        const struct hrt_param *param = &program->param[i];
        if (param->set >= 0 && param->elements > most) most = param->elements;
    }
    return (size_t)(most * hrt_params_element_bytes(program->precision));
}

bool hrt_params_gather_sends(const struct hrt_gather *gather) {
    return gather->comm && gather->comm->rank > 0;
}

bool hrt_params_gather_open(struct hrt_gather *gather, struct hrt_error *error) {
    if (!gather->comm || hrt_params_gather_sends(gather) || gather->buffer.staging) return true;
    gather->room = malloc(room_bytes(gather->buffer.placement->program));
    return gather->room || hrt_fail(error, "out of memory");
}

void hrt_params_gather_close(struct hrt_gather *gather) {
    free(gather->room);
    gather->room = NULL;
}

void hrt_params_gather_tensor(struct hrt_gather *gather, const struct hrt_tensor *tensor,
                              int64_t columns) {
    gather->slice = (struct hrt_slice){.tensor = *tensor, .columns = columns};
}

// A slice of another rank gets room in the staging buffer, or on the host in `room`.
static void make_room(struct hrt_gather *gather) {
    struct hrt_slice *slice = &gather->slice;
    if (slice->staged) {
        hrt_params_staging_reset(&gather->buffer);
        hrt_params_slice_room(&gather->buffer, slice);
    } else {
        slice->at = gather->room;
        slice->tensor.offset = 0;
    }
}

bool hrt_params_gather_next(struct hrt_gather *gather) {
    const struct hrt_placement *placement = gather->buffer.placement;
    struct hrt_comm *comm = gather->comm;
    struct hrt_slice *slice = &gather->slice;
    struct hrt_step step;
    struct hrt_steps steps = {.step = &step, .room = 1};
    size_t bytes;
    if (!slice->tensor.param || !hrt_params_slice_next(&gather->buffer, slice)) return false;
    const int owner = comm ? hrt_params_tensor_rank(placement, &slice->tensor) : 0;
    const int rank = comm ? comm->rank : 0;
    if (rank == owner) hrt_params_slice_bring(&gather->buffer, slice);
    if (owner == 0 || (rank != 0 && rank != owner)) return true;
    if (rank == 0) make_room(gather);
    void *data = hrt_params_slice_bytes(placement->program, slice, &bytes);
    if (rank == 0)
        hrt_net_steps_receive(&steps, owner, data, bytes, -1);
    else
        hrt_net_steps_send(&steps, 0, data, bytes, -1);
    hrt_net_lane_join(comm, hrt_net_lane_submit(comm, HRT_LANE_SAVE, &steps),
                      "the parameters to be saved");
    return true;
}
