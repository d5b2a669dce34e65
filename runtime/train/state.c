// Takes the memory of a run from its device, and gives it back.
#include "runtime/train/state.h"

#include <assert.h>
#include <stdlib.h>

#include "runtime/experts/experts.h"
#include "runtime/experts/fssdp_run.h"
#include "runtime/net/transport.h"
#include "runtime/params/rounded.h"
#include "runtime/params/tensor.h"
#include "runtime/train/dense.h"
#include "runtime/train/devices.h"
#include "runtime/train/memory.h"
#include "runtime/train/ranks.h"

// `sparse`: only part of it will ever be touched.
static bool reserve(struct hrt_state *state, enum hrt_memory memory, void **buffer, size_t bytes,
                    bool sparse, const char *what, struct hrt_error *error) {
    struct hrt_device *device = &state->device;
    *buffer = device->backend->take(device, memory, bytes, sparse);
    if (*buffer) return true;
    char size[32];
    hrt_format_bytes(size, sizeof size, (double)bytes);
    return hrt_fail(error, "not enough memory%s%s: %s need %s",
                    memory == HRT_OF_DEVICE && hrt_device_is_apart(device) ? " on " : "",
                    memory == HRT_OF_DEVICE && hrt_device_is_apart(device) ? device->name : "",
                    what, size);
}

bool hrt_state_take(struct hrt_state *state, enum hrt_memory memory, void **buffer, size_t bytes,
                    const char *what, struct hrt_error *error) {
    return reserve(state, memory, buffer, bytes, false, what, error);
}

static void release(struct hrt_state *state, enum hrt_memory memory, void *buffer, size_t bytes) {
    if (buffer) state->device.backend->give(&state->device, memory, buffer, bytes);
}

// Where experts live on several ranks, parameters keep their places, and a rank touches its own.
static bool reserve_all(struct hrt_state *state, enum hrt_training training,
                        struct hrt_error *error) {
    const struct hrt_program *program = state->program;
    const size_t params = hrt_state_params_bytes(program), batch = hrt_memory_ids_bytes(program);
    const size_t rounded = hrt_rounded_bytes(program);
    const bool own = program->owned, part = own || program->dense_shard;
    const bool ahead = hrt_device_is_apart(&state->device) && !program->world;
    void *ids = NULL, *targets = NULL, *sums = NULL, *clipped = NULL;
    const struct {
        enum hrt_memory memory;
        void **buffer;
        size_t bytes;
        bool sparse, wanted;
        const char *what;
    } all[] = {
        {HRT_OF_BOTH, &state->model, program->model_bytes, false, true, "the model's tables"},
        {HRT_OF_DEVICE, &state->values[HRT_PARAMETERS], params, own, true, "parameters"},
        {HRT_OF_DEVICE, &state->values[HRT_GRADIENTS], params, own, true, "gradients"},
        {HRT_OF_DEVICE, &state->arena, program->arena_bytes, false, true, "the arena's values"},
        {HRT_OF_BOTH, &ids, batch, false, true, "token ids"},
        {HRT_OF_BOTH, &targets, batch, false, true, "target ids"},
        {HRT_OF_BOTH, &sums, hrt_memory_sums_bytes(program), false, true, "sums of squares"},
        {HRT_OF_DEVICE, &clipped, sizeof *state->clipped, false, ahead, "the norm"},
        {HRT_OF_DEVICE, &state->rounded, rounded, own, rounded, "parameters rounded to bf16"},
        {HRT_OF_DEVICE, &state->values[HRT_MEANS], params, part, training, "the optimizer's means"},
        {HRT_OF_DEVICE, &state->values[HRT_VARIANCES], params, part, training,
         "the optimizer's variances"},
    };
    bool reserved = true;
    for (size_t i = 0; reserved && i < sizeof all / sizeof *all; i++) {
        if (!all[i].wanted) continue;
        reserved = reserve(state, all[i].memory, all[i].buffer, all[i].bytes, all[i].sparse,
                           all[i].what, error);
    }
    state->ids = ids;
    state->targets = targets;
    state->sums = sums;
    state->clipped = clipped;
    return reserved;
}

// What the emitted program calls of the device.
static void bind_device(struct hrt_state *state) {
    const struct hrt_program *program = state->program;
    if (!hrt_device_is_apart(&state->device)) return;
    char *model = state->model;
    *(struct hrt_device **)(model + program->device_offset) = &state->device;
    *(struct hkc_lane **)(model + program->lane_offset) = state->device.lane;
}

bool hrt_state_create(struct hrt_state *state, struct hrt_placement *placement,
                      struct hrt_comm *comm, enum hrt_training training, struct hrt_error *error) {
    const struct hrt_program *program = placement->program;
    *state = (struct hrt_state){
        .program = program,
        .placement = placement,
        .training = training,
        .comm = program->world ? comm : NULL,
    };
    const int local = state->comm ? hrt_comm_local(comm) : 0;
    const bool opened = hrt_device_open(&state->device, program, local, error);
    bool created = hrt_devices_meet(state, opened, error) &&
                   hrt_memory_check(&state->device, program, training, error) &&
                   reserve_all(state, training, error);
    if (state->comm && !error->shared) created = hrt_ranks_agree(state->comm, created, error);
    if (!created) { // Ranks that have met part together.
        hrt_state_destroy(state);
        return false;
    }
    bind_device(state);
    program->bind(state->model, state->values[HRT_PARAMETERS], state->values[HRT_GRADIENTS],
                  state->arena);
    if (program->bind_rounded) program->bind_rounded(state->model, state->rounded);
    return true;
}

static size_t teacher_bytes(const struct hrt_state *state) {
    return hrt_memory_ids_bytes(state->program) * (size_t)state->teacher.count;
}

bool hrt_state_teach(struct hrt_state *state, int64_t entries, struct hrt_error *error) {
    _Static_assert(sizeof(float) == sizeof(int32_t), "ids and log-probabilities take as much");
    const struct hrt_program *program = state->program;
    void *ids = NULL, *log_probs = NULL;
    if (!program->teacher_offset || !entries) return true;
    state->teacher.count = entries;
    const size_t bytes = teacher_bytes(state);
    const bool taken =
        hrt_state_take(state, HRT_OF_BOTH, &ids, bytes, "teacher entries", error) &&
        hrt_state_take(state, HRT_OF_BOTH, &log_probs, bytes, "teacher entries", error);
    state->said = (struct hrt_said){ids, log_probs};
    if (!taken) return false;
    state->teacher.ids = ids;
    state->teacher.log_probs = log_probs;
    hrt_state_tell(state, state->teacher);
    return true;
}

void hrt_state_tell(struct hrt_state *state, struct hk_teacher teacher) {
    if (!teacher.count) return;
    *(struct hk_teacher *)((char *)state->model + state->program->teacher_offset) = teacher;
}

void hrt_state_destroy(struct hrt_state *state) {
    const struct hrt_program *program = state->program;
    const size_t params = hrt_state_params_bytes(program);
    hrt_fssdp_destroy(state->fssdp); // Chunks may still be on their way to other ranks,
    hrt_dense_destroy(state->dense); // and gradients.
    release(state, HRT_OF_BOTH, state->model, program->model_bytes);
    for (int i = 0; i < HRT_VALUES; i++) release(state, HRT_OF_DEVICE, state->values[i], params);
    release(state, HRT_OF_DEVICE, state->rounded, hrt_rounded_bytes(program));
    release(state, HRT_OF_DEVICE, state->arena, program->arena_bytes);
    release(state, HRT_OF_BOTH, state->ids, hrt_memory_ids_bytes(program));
    release(state, HRT_OF_BOTH, state->targets, hrt_memory_ids_bytes(program));
    release(state, HRT_OF_BOTH, state->said.ids, teacher_bytes(state));
    release(state, HRT_OF_BOTH, state->said.log_probs, teacher_bytes(state));
    release(state, HRT_OF_BOTH, state->sums, hrt_memory_sums_bytes(program));
    release(state, HRT_OF_DEVICE, state->clipped, sizeof *state->clipped);
    hrt_experts_destroy(state->experts);
    if (state->comm && state->comm->executor) state->comm->executor->close(state->comm);
    hrt_device_close(&state->device);
    *state = (struct hrt_state){.program = program};
}

struct hrt_losses hrt_state_forward(struct hrt_state *state, int64_t batch, double scale,
                                    double auxiliary_scale) {
    hrt_state_tell(state, state->teacher);
    return state->program->forward(state->model, batch, state->ids, state->targets, scale,
                                   auxiliary_scale);
}

struct hrt_loss hrt_loss_at(const struct hrt_program *program, int number) {
    if (number > 0) return program->loss[number - 1];
    return (struct hrt_loss){.ahead = 1,
                             .logits_offset = program->logits_offset,
                             .logits_rows = program->logits_rows,
                             .logits_bf16 = program->logits_bf16};
}

const void *hrt_state_logits(struct hrt_state *state, int number, int64_t first, int64_t count) {
    const struct hrt_program *program = state->program;
    const struct hrt_loss loss = hrt_loss_at(program, number);
    const int64_t element =
        loss.logits_bf16 ? (int64_t)sizeof(hk_bf16) : hrt_element_bytes(program->precision);
    const char *logits = (const char *)state->arena + loss.logits_offset;
    if (!loss.logits_rows) return logits + first * program->vocabulary * element;
    assert(count <= loss.logits_rows);
    program->logits(state->model, number, first, count);
    return logits;
}

void hrt_state_round(struct hrt_state *state) {
    struct hrt_device *device = &state->device;
    const float *params = state->values[HRT_PARAMETERS];
    struct hrt_tensor tensor = {0};
    if (!hrt_device_is_apart(device)) {
        hrt_round_params(state->placement, params, state->rounded);
        return;
    }
    while (state->rounded && hrt_tensor_next_here(state->placement, &tensor)) {
        if (!tensor.param->rounded) continue;
        assert(tensor.param->layout == HRT_ROWS);
        device->backend->round(device, (hk_bf16 *)state->rounded + tensor.offset,
                               params + tensor.offset, tensor.param->elements);
    }
}

void hrt_state_await(struct hrt_state *state) {
    hrt_device_join(&state->device, HRT_WHY_BATCH);
}

void *hrt_state_borrow(struct hrt_state *state, enum hrt_values values) {
    if (!hrt_device_is_apart(&state->device)) return state->values[values];
    const size_t bytes = hrt_state_params_bytes(state->program);
    void *copy = malloc(bytes);
    if (copy) hrt_device_read(&state->device, copy, state->values[values], bytes, HRT_WHY_VALUES);
    return copy;
}

void hrt_state_hand_back(struct hrt_state *state, enum hrt_values values, void *borrowed,
                         bool changed) {
    if (!hrt_device_is_apart(&state->device)) return;
    if (changed)
        hrt_device_write(&state->device, state->values[values], borrowed,
                         hrt_state_params_bytes(state->program));
    free(borrowed);
}
