// Takes the memory of a run from its device, and gives it back.
#include "runtime/train/create.h"

#include "runtime/base/format.h"
#include "runtime/experts/experts.h"
#include "runtime/experts/fssdp_run.h"
#include "runtime/net/transport.h"
#include "runtime/params/chunks.h"
#include "runtime/params/rounded.h"
#include "runtime/train/dense.h"
#include "runtime/train/devices.h"
#include "runtime/train/memory.h"
#include "runtime/train/ranks.h"

static void release(struct hrt_state *state, enum hrt_memory memory, void *buffer, size_t bytes) {
    if (buffer) state->device.backend->give(&state->device, memory, buffer, bytes);
}

static void *buffer_of(const struct hrt_state *state, enum hpl_buffer buffer) {
    return buffer == HPL_COPIES ? state->rounded : state->values[buffer];
}

static bool is_on_host(const struct hrt_state *state, enum hpl_buffer buffer) {
    return hrt_params_home(state->program, buffer) == HRT_AT_HOST;
}

// Memory behind a part of a buffer: outside of experts, parameters are at the device.
static bool touch_part(struct hrt_state *state, enum hpl_buffer buffer,
                       const struct hpl_extent *extent) {
    const struct hpl_held *held = &state->placement->held;
    const int64_t element = hpl_held_element(held, buffer);
    char *at = (char *)buffer_of(state, buffer) + extent->offset * element;
    const enum hrt_home home =
        buffer == HPL_PARAMETERS ? HRT_AT_DEVICE : hrt_params_home(state->program, buffer);
    if (extent->of < 0)
        return hrt_device_touch(&state->device, at, (size_t)(extent->count * element), home);
    const struct hpl_held_set *set = &held->set[extent->of];
    const int64_t first = (extent->offset - set->offset) / set->chunk_elements;
    const int64_t chunks = (extent->count + set->chunk_elements - 1) / set->chunk_elements;
    bool touched = true;
    for (int64_t i = 0; touched && i < chunks; i++)
        touched = hrt_params_chunk_touch(state, buffer, extent->of, first + i);
    return touched;
}

static const char HOST_NEEDS[] =
    " (parallel.states = host takes a driver of CUDA 12.2 or later, too)";

// Puts memory behind the parts of a buffer that this rank uses.
static bool touch(struct hrt_state *state, enum hpl_buffer buffer, const char *what,
                  struct hrt_error *error) {
    const int64_t element = hpl_held_element(&state->placement->held, buffer);
    char size[32];
    struct hpl_extent extent = {0};
    int64_t bytes = 0;
    while (hpl_held_next(&state->placement->held, state->placement->rank, buffer, &extent)) {
        if (touch_part(state, buffer, &extent)) {
            bytes += extent.count * element;
            continue;
        }
        hrt_format_bytes(size, sizeof size, (double)bytes);
        return hrt_fail(error, "not enough memory on %s: %s need more than %s%s",
                        is_on_host(state, buffer) ? "the host" : state->device.name, what, size,
                        is_on_host(state, buffer) ? HOST_NEEDS : "");
    }
    return true;
}

static bool touch_all(struct hrt_state *state, struct hrt_error *error) {
    static const char *const what[] = {"parameters", "gradients", "the optimizer's means",
                                       "the optimizer's variances", "parameters rounded to bf16"};
    bool touched = true;
    const bool in_parts = hpl_held_in_parts(&state->placement->held);
    if (!hrt_device_is_apart(&state->device)) return true;
    for (int i = 0; touched && i < HPL_BUFFERS; i++) {
        if (buffer_of(state, i) && (in_parts || is_on_host(state, i)))
            touched = touch(state, i, what[i], error);
    }
    return touched;
}

static bool has_copies_alone(const struct hrt_program *program) {
    bool found = false;
    for (int i = 0; i < program->params; i++) found = found || program->param[i].rounded_only;
    return found;
}

// Parameters have the same places on every rank, and a rank touches only its own; gradients and states are there for
// trained ones.
static bool reserve_all(struct hrt_state *state, enum hrt_training training,
                        struct hrt_error *error) {
    const struct hrt_program *program = state->program;
    const size_t params = hrt_params_state_bytes(program),
                 batch = hrt_params_state_ids_bytes(program);
    const size_t rounded = hrt_params_rounded_bytes(program);
    const bool apart = hrt_device_is_apart(&state->device), ahead = apart && !program->world;
    const bool in_parts = hpl_held_in_parts(&state->placement->held), own = program->owned;
    const bool part = in_parts || program->dense == HRT_DENSE_STATES;
    const enum hrt_memory placed = in_parts ? HRT_IN_PARTS : HRT_OF_DEVICE;
    const enum hrt_memory states = program->host_states ? HRT_IN_PARTS : placed;
    const enum hrt_memory masters = program->bind_rounded ? states : placed;
    void *ids = NULL, *targets = NULL, *sums = NULL, *clipped = NULL;
    const struct {
        enum hrt_memory memory;
        void **buffer;
        size_t bytes;
        bool sparse, wanted;
        const char *what;
    } all[] = {
        {HRT_OF_BOTH, &state->model, program->model_bytes, false, true, "the model's tables"},
        {masters, &state->values[HRT_PARAMETERS], params, own || has_copies_alone(program), true,
         "parameters"},
        {placed, &state->values[HRT_GRADIENTS], params, in_parts, true, "gradients"},
        {HRT_OF_DEVICE, &state->arena, program->arena_bytes, false, true, "the arena's values"},
        {HRT_OF_BOTH, &ids, batch, false, true, "token ids"},
        {HRT_OF_BOTH, &targets, batch, false, true, "target ids"},
        {HRT_OF_BOTH, &sums, hrt_train_memory_sums_bytes(program), false, true, "sums of squares"},
        {HRT_OF_DEVICE, &clipped, sizeof *state->clipped, false, ahead, "the norm"},
        {HRT_OF_BOTH, &state->staging.base, hrt_params_staging_bytes(program), false, apart,
         "the staging buffer"},
        {placed, &state->rounded, rounded, own, rounded, "parameters rounded to bf16"},
        {states, &state->values[HRT_MEANS], params, part, training, "the optimizer's means"},
        {states, &state->values[HRT_VARIANCES], params, part, training,
         "the optimizer's variances"},
    };
    state->staging =
        (struct hrt_staging){.device = &state->device, .bytes = hrt_params_staging_bytes(program)};
    bool reserved = true;
    for (size_t i = 0; reserved && i < sizeof all / sizeof *all; i++) {
        if (!all[i].wanted) continue;
        reserved = hrt_params_state_reserve(state, all[i].memory, all[i].buffer, all[i].bytes,
                                            all[i].sparse, all[i].what, error);
    }
    state->ids = ids;
    state->targets = targets;
    state->sums = sums;
    state->clipped = clipped;
    return reserved && touch_all(state, error);
}

// The emitted program finds its device in the model.
static void bind_device(struct hrt_state *state) {
    const struct hrt_program *program = state->program;
    if (!hrt_device_is_apart(&state->device)) return;
    char *model = state->model;
    *(struct hrt_device **)(model + program->device_offset) = &state->device;
    *(struct hkc_lane **)(model + program->lane_offset) = state->device.lane;
}

bool hrt_train_state_create(struct hrt_state *state, struct hrt_placement *placement,
                            struct hrt_comm *comm, enum hrt_training training,
                            struct hrt_error *error) {
    const struct hrt_program *program = placement->program;
    *state = (struct hrt_state){
        .program = program,
        .placement = placement,
        .training = training,
        .comm = program->world ? comm : NULL,
    };
    const int local = state->comm ? hrt_net_comm_local(comm) : 0;
    const bool opened = hrt_device_open(&state->device, program, local, error);
    bool created = hrt_train_devices_meet(state, opened, error) &&
                   hrt_train_memory_check(&state->device, program, training, error) &&
                   reserve_all(state, training, error);
    if (state->comm && !error->shared) created = hrt_train_ranks_agree(state->comm, created, error);
    if (!created) { // Ranks that have met part together.
        hrt_train_state_destroy(state);
        return false;
    }
    bind_device(state);
    program->bind(state->model, state->values[HRT_PARAMETERS], state->values[HRT_GRADIENTS],
                  state->arena);
    if (program->bind_rounded) program->bind_rounded(state->model, state->rounded);
    return true;
}

void hrt_train_state_destroy(struct hrt_state *state) {
    const struct hrt_program *program = state->program;
    const size_t params = hrt_params_state_bytes(program);
    hrt_experts_fssdp_destroy(state->fssdp); // Chunks may still be on their way to other ranks,
    hrt_train_dense_destroy(state->dense);   // and gradients.
    release(state, HRT_OF_BOTH, state->model, program->model_bytes);
    for (int i = 0; i < HRT_VALUES; i++) release(state, HRT_OF_DEVICE, state->values[i], params);
    release(state, HRT_OF_DEVICE, state->rounded, hrt_params_rounded_bytes(program));
    release(state, HRT_OF_DEVICE, state->arena, program->arena_bytes);
    release(state, HRT_OF_BOTH, state->ids, hrt_params_state_ids_bytes(program));
    release(state, HRT_OF_BOTH, state->targets, hrt_params_state_ids_bytes(program));
    release(state, HRT_OF_BOTH, state->staging.base, state->staging.bytes);
    hrt_params_state_forget(state);
    release(state, HRT_OF_BOTH, state->sums, hrt_train_memory_sums_bytes(program));
    release(state, HRT_OF_DEVICE, state->clipped, sizeof *state->clipped);
    hrt_experts_destroy(state->experts);
    if (state->comm && state->comm->executor) state->comm->executor->close(state->comm);
    hrt_device_close(&state->device);
    *state = (struct hrt_state){.program = program};
}
