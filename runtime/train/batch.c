// Forward and backward of an iteration.
#include "runtime/train/batch.h"

#include <math.h>

static size_t bytes_of(const struct hrt_batch *batch) {
    return (size_t)(batch->sequences * batch->state->program->positions) * sizeof *batch->ids;
}

static size_t said_bytes(const struct hrt_batch *batch) {
    return bytes_of(batch) * (size_t)batch->state->teacher.count;
}

// Takes memory for teacher entries.
static bool take_said(struct hrt_batch *batch, struct hrt_error *error) {
    void *ids = NULL, *log_probs = NULL;
    const size_t bytes = said_bytes(batch);
    const bool taken =
        !bytes ||
        (hrt_params_state_take(batch->state, HRT_OF_DEVICE, &ids, bytes, "a batch", error) &&
         hrt_params_state_take(batch->state, HRT_OF_DEVICE, &log_probs, bytes, "a batch", error));
    batch->said = (struct hrt_said){ids, log_probs};
    return taken;
}

static bool take(struct hrt_batch *batch, struct hrt_error *error) {
    void *ids = NULL, *targets = NULL, *first = NULL;
    const size_t bytes = bytes_of(batch);
    const bool taken =
        hrt_params_state_take(batch->state, HRT_OF_DEVICE, &ids, bytes, "a batch", error) &&
        hrt_params_state_take(batch->state, HRT_OF_DEVICE, &targets, bytes, "a batch", error) &&
        hrt_params_state_take(batch->state, HRT_OF_DEVICE, &first, sizeof *batch->first, "a batch",
                              error);
    batch->ids = ids;
    batch->targets = targets;
    batch->first = first;
    return taken && take_said(batch, error);
}

bool hrt_train_batch_create(struct hrt_batch *batch, struct hrt_state *state, int64_t sequences,
                            struct hrt_error *error) {
    *batch = (struct hrt_batch){
        .state = state,
        .sequences = sequences,
        .ids = state->ids,
        .targets = state->targets,
        .said = state->said,
        .apart = hrt_device_is_apart(&state->device),
        .repeats = state->device.records && state->clipped && !state->program->iteration_offset,
    };
    return !batch->apart || take(batch, error);
}

void hrt_train_batch_destroy(struct hrt_batch *batch) {
    hrt_device_graph_destroy(&batch->forward);
    hrt_device_graph_destroy(&batch->backward);
    if (batch->apart) {
        struct hrt_device *device = &batch->state->device;
        device->backend->give(device, HRT_OF_DEVICE, batch->ids, bytes_of(batch));
        device->backend->give(device, HRT_OF_DEVICE, batch->targets, bytes_of(batch));
        if (batch->said.ids)
            device->backend->give(device, HRT_OF_DEVICE, batch->said.ids, said_bytes(batch));
        if (batch->said.log_probs)
            device->backend->give(device, HRT_OF_DEVICE, batch->said.log_probs, said_bytes(batch));
        device->backend->give(device, HRT_OF_DEVICE, batch->first, sizeof *batch->first);
    }
    *batch = (struct hrt_batch){0};
}

void hrt_train_batch_bring(struct hrt_batch *batch, const struct hrt_flight *flight,
                           int64_t iteration) {
    struct hrt_device *device = &batch->state->device;
    const int64_t first = iteration * flight->tokens;
    hrt_device_fetch(device, batch->ids, flight->ids + first, bytes_of(batch));
    hrt_device_fetch(device, batch->targets, flight->targets + first, bytes_of(batch));
    if (!flight->entries) return;
    const struct hrt_said said = hrt_train_flight_values(flight, iteration);
    hrt_device_fetch(device, batch->said.ids, said.ids, said_bytes(batch));
    hrt_device_fetch(device, batch->said.log_probs, said.log_probs, said_bytes(batch));
}

struct hrt_losses hrt_train_batch_forward(struct hrt_batch *batch, bool repeats) {
    struct hrt_state *state = batch->state;
    const bool is_graph = repeats && batch->repeats;
    hrt_params_state_tell(state, (struct hk_teacher){.ids = batch->said.ids,
                                                     .log_probs = batch->said.log_probs,
                                                     .count = state->teacher.count,
                                                     .sums = batch->apart ? NULL : batch->sums});
    if (is_graph && hrt_device_graph_run(&batch->forward, &state->device))
        return (struct hrt_losses){.loss = NAN};
    const struct hrt_losses losses =
        state->program->forward(state->model, batch->sequences, batch->ids, batch->targets,
                                batch->scale, batch->auxiliary_scale);
    if (is_graph) hrt_device_graph_end(&batch->forward);
    return losses;
}

void hrt_train_batch_backward(struct hrt_batch *batch, bool repeats) {
    struct hrt_state *state = batch->state;
    const bool is_graph = repeats && batch->repeats;
    if (is_graph && hrt_device_graph_run(&batch->backward, &state->device)) return;
    state->program->backward(state->model, batch->sequences, batch->ids, batch->targets,
                             batch->scale, batch->auxiliary_scale);
    if (is_graph) hrt_device_graph_end(&batch->backward);
}
