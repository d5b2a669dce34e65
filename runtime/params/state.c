// Buffers of a state, and calls of a program that computes in them.
#include "runtime/params/state.h"

#include <assert.h>

#include "runtime/base/format.h"
#include "runtime/params/rounded.h"
#include "runtime/params/tensor.h"

size_t hrt_params_state_bytes(const struct hrt_program *program) {
    return (size_t)program->param_elements * (size_t)hrt_params_element_bytes(program->precision);
}

size_t hrt_params_state_ids_bytes(const struct hrt_program *program) {
    return (size_t)(program->batch * program->positions) * sizeof(int32_t);
}

bool hrt_params_state_reserve(struct hrt_state *state, enum hrt_memory memory, void **buffer,
                              size_t bytes, bool sparse, const char *what,
                              struct hrt_error *error) {
    struct hrt_device *device = &state->device;
    *buffer = device->backend->take(device, memory, bytes, sparse);
    if (*buffer) return true;
    char size[32];
    hrt_format_bytes(size, sizeof size, (double)bytes);
    return hrt_fail(error, "not enough memory%s%s: %s need %s",
                    memory != HRT_OF_BOTH && hrt_device_is_apart(device) ? " on " : "",
                    memory != HRT_OF_BOTH && hrt_device_is_apart(device) ? device->name : "", what,
                    size);
}

bool hrt_params_state_take(struct hrt_state *state, enum hrt_memory memory, void **buffer,
                           size_t bytes, const char *what, struct hrt_error *error) {
    return hrt_params_state_reserve(state, memory, buffer, bytes, false, what, error);
}

static size_t teacher_bytes(const struct hrt_state *state) {
    return hrt_params_state_ids_bytes(state->program) * (size_t)state->teacher.count;
}

static bool take_values(struct hrt_state *state, int64_t entries, const char *what,
                        struct hrt_error *error) {
    _Static_assert(sizeof(float) == sizeof(int32_t), "ids and log-probabilities take as much");
    void *ids = NULL, *log_probs = NULL;
    state->teacher.count = entries;
    const size_t bytes = teacher_bytes(state);
    const bool taken = hrt_params_state_take(state, HRT_OF_BOTH, &ids, bytes, what, error) &&
                       hrt_params_state_take(state, HRT_OF_BOTH, &log_probs, bytes, what, error);
    state->said = (struct hrt_said){ids, log_probs};
    if (!taken) return false;
    state->teacher.ids = ids;
    state->teacher.log_probs = log_probs;
    hrt_params_state_tell(state, state->teacher);
    return true;
}

bool hrt_params_state_teach(struct hrt_state *state, int64_t entries, struct hrt_error *error) {
    return !state->program->teacher_offset || !entries ||
           take_values(state, entries, "teacher entries", error);
}

bool hrt_params_state_weigh(struct hrt_state *state, struct hrt_error *error) {
    state->weighted = state->program->weights_offset;
    return !state->weighted || take_values(state, 1, "weights of tokens", error);
}

void hrt_params_state_forget(struct hrt_state *state) {
    struct hrt_device *device = &state->device;
    const size_t bytes = teacher_bytes(state);
    if (state->said.ids) device->backend->give(device, HRT_OF_BOTH, state->said.ids, bytes);
    if (state->said.log_probs)
        device->backend->give(device, HRT_OF_BOTH, state->said.log_probs, bytes);
    state->said = (struct hrt_said){0};
}

void hrt_params_state_tell(struct hrt_state *state, struct hk_teacher teacher) {
    char *model = state->model;
    if (!teacher.count) return;
    if (state->weighted)
        *(const float **)(model + state->program->weights_offset) = teacher.log_probs;
    else
        *(struct hk_teacher *)(model + state->program->teacher_offset) = teacher;
}

struct hrt_losses hrt_params_state_forward(struct hrt_state *state, int64_t batch, double scale,
                                           double auxiliary_scale) {
    hrt_params_state_tell(state, state->teacher);
    return state->program->forward(state->model, batch, state->ids, state->targets, scale,
                                   auxiliary_scale);
}

struct hrt_loss hrt_params_loss_at(const struct hrt_program *program, int number) {
    if (number > 0) return program->loss[number - 1];
    return (struct hrt_loss){.ahead = 1,
                             .logits_offset = program->logits_offset,
                             .logits_rows = program->logits_rows,
                             .logits_bf16 = program->logits_bf16};
}

const void *hrt_params_state_logits(struct hrt_state *state, int number, int64_t first,
                                    int64_t count) {
    const struct hrt_program *program = state->program;
    const struct hrt_loss loss = hrt_params_loss_at(program, number);
    const int64_t element =
        loss.logits_bf16 ? (int64_t)sizeof(hk_bf16) : hrt_params_element_bytes(program->precision);
    const char *logits = (const char *)state->arena + loss.logits_offset;
    if (!loss.logits_rows) return logits + first * program->vocabulary * element;
    assert(count <= loss.logits_rows);
    program->logits(state->model, number, first, count);
    return logits;
}

void hrt_params_state_round(struct hrt_state *state) {
    struct hrt_device *device = &state->device;
    const float *params = state->values[HRT_PARAMETERS];
    struct hrt_tensor tensor = {0};
    if (!hrt_device_is_apart(device)) {
        hrt_params_round(state->placement, params, state->rounded);
        return;
    }
    while (state->rounded && hrt_params_tensor_next_here(state->placement, &tensor)) {
        if (!tensor.param->rounded || tensor.param->rounded_only ||
            hrt_params_is_cut(state->program, tensor.param, HRT_PARAMETERS))
            continue;
        assert(tensor.param->layout == HRT_ROWS);
        device->backend->round(device, (hk_bf16 *)state->rounded + tensor.offset,
                               params + tensor.offset, tensor.param->elements);
    }
}

void hrt_params_state_await(struct hrt_state *state) {
    hrt_device_join(&state->device, HRT_WHY_BATCH);
}

struct hrt_buffer hrt_params_state_buffer(struct hrt_state *state, enum hrt_values values) {
    return (struct hrt_buffer){
        .placement = state->placement,
        .values = state->values[values],
        .rounded = state->rounded,
        .kind = values,
        .staging = hrt_device_is_apart(&state->device) ? &state->staging : NULL,
    };
}
