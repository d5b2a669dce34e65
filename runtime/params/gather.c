// Sends and receives, on the lane of saves.
#include "runtime/params/gather.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/net/transport.h"

bool hrt_params_gathers(const struct hrt_buffer *buffer) {
    const struct hrt_program *program = buffer->placement->program;
    bool any = buffer->placement->owner;
    for (int i = 0; i < program->params; i++)
        any = any || hrt_params_is_cut(program, &program->param[i], buffer->kind);
    return any;
}

// Bytes of the largest tensor that comes from others, as it is stored.
static size_t room_bytes(const struct hrt_buffer *buffer) {
    const struct hrt_program *program = buffer->placement->program;
    int64_t most = 1;
    for (int i = 0; i < program->params; i++) {
        const struct hrt_param *param = &program->param[i];
        const bool comes = param->set >= 0 || hrt_params_is_cut(program, param, buffer->kind);
        if (comes && param->elements > most) most = param->elements;
    }
    return (size_t)(most * hrt_params_element_bytes(program->precision));
}

bool hrt_params_gather_sends(const struct hrt_gather *gather) {
    return gather->comm && gather->comm->rank != gather->to;
}

bool hrt_params_gather_open(struct hrt_gather *gather, struct hrt_error *error) {
    if (!gather->comm) return true;
    gather->step = calloc((size_t)gather->comm->size, sizeof *gather->step);
    gather->room = gather->buffer.staging ? NULL : malloc(room_bytes(&gather->buffer));
    if (gather->step && (gather->room || gather->buffer.staging)) return true;
    hrt_params_gather_close(gather);
    return hrt_fail(error, "out of memory");
}

void hrt_params_gather_close(struct hrt_gather *gather) {
    free(gather->room);
    free(gather->step);
    gather->room = NULL;
    gather->step = NULL;
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
        slice->here = (struct hrt_params_part){0, 0, slice->tensor.param->elements};
    }
}

static void move(struct hrt_gather *gather, struct hrt_steps *steps) {
    hrt_net_lane_join(gather->comm, hrt_net_lane_submit(gather->comm, HRT_LANE_SAVE, steps),
                      "the parameters to be saved");
}

// All ranks send their parts of a tensor.
static void bring_parts(struct hrt_gather *gather) {
    struct hrt_slice *slice = &gather->slice;
    const struct hrt_program *program = gather->buffer.placement->program;
    struct hrt_steps steps = {.step = gather->step, .room = gather->comm->size};
    const int rank = gather->comm->rank;
    size_t bytes, own;
    const size_t at = hrt_params_slice_share(&gather->buffer, slice, rank, &own);
    hrt_params_slice_bring(&gather->buffer, slice);
    char *from = hrt_params_slice_bytes(program, slice, &bytes);
    if (slice->staged) from += at;
    if (rank != gather->to) {
        if (own) hrt_net_steps_send(&steps, gather->to, from, own, -1);
        move(gather, &steps);
        return;
    }
    if (!slice->staged) {
        make_room(gather);
        memcpy((char *)gather->room + at, from, own);
    }
    char *to = hrt_params_slice_bytes(program, slice, &bytes);
    for (int r = 0; r < gather->comm->size; r++) {
        const size_t place = hrt_params_slice_share(&gather->buffer, slice, r, &bytes);
        if (r != rank && bytes) hrt_net_steps_receive(&steps, r, to + place, bytes, -1);
    }
    move(gather, &steps);
}

// The one rank that has it sends a tensor; all of them have one of no expert.
static void bring_whole(struct hrt_gather *gather) {
    struct hrt_slice *slice = &gather->slice;
    const struct hrt_placement *placement = gather->buffer.placement;
    const bool owned = placement->owner && slice->tensor.param->set >= 0;
    const int owner = owned ? hrt_params_tensor_rank(placement, &slice->tensor) : gather->to;
    struct hrt_steps steps = {.step = gather->step, .room = 1};
    const int rank = gather->comm->rank;
    size_t bytes;
    if (rank == owner) hrt_params_slice_bring(&gather->buffer, slice);
    if (owner == gather->to || (rank != gather->to && rank != owner)) return;
    if (rank == gather->to) make_room(gather);
    void *data = hrt_params_slice_bytes(placement->program, slice, &bytes);
    if (rank == gather->to)
        hrt_net_steps_receive(&steps, owner, data, bytes, -1);
    else
        hrt_net_steps_send(&steps, gather->to, data, bytes, -1);
    move(gather, &steps);
}

bool hrt_params_gather_next(struct hrt_gather *gather) {
    const struct hrt_buffer *buffer = &gather->buffer;
    struct hrt_slice *slice = &gather->slice;
    if (!slice->tensor.param || !hrt_params_slice_next(buffer, slice)) return false;
    if (!gather->comm)
        hrt_params_slice_bring(buffer, slice);
    else if (hrt_params_is_cut(buffer->placement->program, slice->tensor.param, buffer->kind))
        bring_parts(gather);
    else
        bring_whole(gather);
    return true;
}
