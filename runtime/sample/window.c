// Forwards for the next token.
#include "runtime/sample/window.h"

#include <math.h>
#include <string.h>

#include "kernels/bf16.h"
#include "runtime/experts/fssdp_run.h"
#include "runtime/params/tensor.h"

void hrt_sample_window_begin(struct hrt_window *w, const int32_t *ids, int64_t count) {
    const int64_t positions = w->state->program->positions;
    const int64_t seen = count < positions ? count : positions;
    memcpy(w->state->ids, ids + count - seen, (size_t)seen * sizeof *ids);
    w->length = seen;
    w->known = 0;
    for (int64_t i = 0; i < positions; i++) w->state->targets[i] = -1;
}

void hrt_sample_window_append(struct hrt_window *w, int32_t id) {
    const int64_t positions = w->state->program->positions;
    int32_t *ids = w->state->ids;
    if (w->length == positions) {
        w->length = positions / 2;
        w->known = 0;
        memmove(ids, ids + positions - w->length, (size_t)w->length * sizeof *ids);
    }
    ids[w->length++] = id;
}

// Computes what is not known of the window. Returns the row of the logits of its last position. Without `seek`
// positions behind it hold token 0, which a causal model does not look at.
static int64_t compute(struct hrt_window *w) {
    struct hrt_state *state = w->state;
    const struct hrt_program *program = state->program;
    const int64_t first = program->seek ? w->known : 0;
    hrt_params_state_await(state);
    for (int64_t i = w->length; i < program->positions; i++) state->ids[i] = 0;
    if (state->fssdp) hrt_experts_fssdp_begin(state->fssdp, false, 0, 1);
    if (program->seek) program->seek(state->model, first, w->length - first);
    program->forward(state->model, 1, state->ids + first, state->targets, 0, 0);
    w->known = w->length;
    return w->length - first - 1;
}

bool hrt_sample_window_score(struct hrt_window *w, struct hrt_candidate *candidate,
                             struct hrt_error *error) {
    struct hrt_state *state = w->state;
    const struct hrt_program *program = state->program;
    const int64_t element = program->logits_bf16 ? (int64_t)sizeof(hk_bf16)
                                                 : hrt_params_element_bytes(program->precision);
    enum { BLOCK = 1024 };
    double block[BLOCK]; // Or floats.
    const char *logits = hrt_params_state_logits(state, 0, compute(w), 1);
    for (int64_t v = 0; v < program->vocabulary; v++) {
        if (v % BLOCK == 0) {
            const int64_t left = program->vocabulary - v;
            hrt_device_read(&state->device, block, logits + v * element,
                            (size_t)((left < BLOCK ? left : BLOCK) * element), HRT_WHY_VALUES);
        }
        const double of_token = program->logits_bf16
                                    ? hk_bf16_float(((const hk_bf16 *)block)[v % BLOCK])
                                    : hrt_params_element(block, program->precision, v % BLOCK);
        candidate[v] = (struct hrt_candidate){of_token, (int32_t)v};
        if (!isfinite(candidate[v].score))
            return hrt_fail(error, "the model's scores are not finite; nothing can be drawn");
    }
    return true;
}

void hrt_sample_window_end(struct hrt_window *w) {
    const struct hrt_program *program = w->state->program;
    if (program->seek) program->seek(w->state->model, 0, program->positions);
}
