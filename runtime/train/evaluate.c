// Losses of validation data.
#include "runtime/train/evaluate.h"

#include <math.h>
#include <string.h>

#include "runtime/experts/experts.h"
#include "runtime/experts/fssdp_run.h"
#include "runtime/train/outputs.h"
#include "runtime/train/ranks.h"
#include "runtime/train/teacher.h"

enum { SUMS = 1 + HRT_NAMED_LOSSES }; // A source has the loss, and the named ones.

struct evaluation {
    struct hrt_state *state;
    const struct hrt_data *data;
    struct hrt_outputs *outputs;
    struct hrt_error *error;
    double scale;
    bool sound; // A rank that cannot read goes on, as the others wait for it.
};

// Sequence `index` of the batch is to predict nothing.
static void set_no_targets(struct hrt_state *state, int64_t index) {
    int32_t *targets = state->targets + index * state->program->positions;
    for (int64_t i = 0; i < state->program->positions; i++) targets[i] = -1;
    hrt_train_teacher_blank(state, state->said, index);
}

// One sequence that counts nothing. Returns 1.
static int64_t set_blank(struct hrt_state *state) {
    for (int64_t i = 0; i < state->program->positions; i++) state->ids[i] = 0;
    set_no_targets(state, 0);
    return 1;
}

// Reads validation window `window` into sequence `index` of the batch; -1: the data's tail, which predicts nothing.
static bool read_window(const struct evaluation *e, int64_t window, int64_t index) {
    struct hrt_state *state = e->state;
    const int64_t first = index * state->program->positions;
    if (window >= 0)
        return hrt_data_window(e->data, window, state->ids + first, state->targets + first,
                               e->error) &&
               hrt_train_teacher_window(state, e->data, window, state->said, index, e->error);
    set_no_targets(state, index);
    return hrt_data_tail(e->data, state->ids + first, e->error);
}

// Forward over the windows of a source, and `tail` more sequences: its last tokens. Adds to sum [SUMS].
static void evaluate_source(struct evaluation *e, int64_t begin, int64_t windows, int64_t tail,
                            double *sum) {
    struct hrt_state *state = e->state;
    const struct hrt_program *program = state->program;
    const int64_t ranks = state->comm ? state->comm->size : 1;
    const int64_t rank = state->comm ? state->comm->rank : 0;
    const int64_t read = windows + tail, most = program->batch * ranks;
    for (int64_t round = 0; round < read; round += most) {
        const int64_t first = round + rank * program->batch, left = read - first;
        const int64_t all = read - round < most ? read - round : most;
        int64_t batch = left < program->batch ? left : program->batch;
        hrt_params_state_await(state);
        for (int64_t i = 0; e->sound && i < batch; i++)
            e->sound = read_window(e, first + i < windows ? begin + first + i : -1, i);
        if (batch < 1) batch = set_blank(state); // Others still send rows to this rank's experts.
        if (state->experts)
            hrt_experts_tokens(state->experts, program->batch * program->positions,
                               all * program->positions);
        if (state->fssdp) hrt_experts_fssdp_begin(state->fssdp, false, 0, 1);
        const struct hrt_losses losses = hrt_params_state_forward(state, batch, e->scale, 0);
        sum[0] += losses.cross_entropy;
        for (int i = 0; i < program->losses; i++) sum[1 + i] += losses.named[i];
        if (e->outputs) hrt_train_outputs_add(e->outputs, state, all);
    }
}

// Sets targets of each source and of all.
static bool count_targets(const struct evaluation *e, const int64_t *windows,
                          struct hrt_validation *validation) {
    const struct hrt_data *data = e->data;
    for (int i = 0; i < data->val_sources; i++) {
        if (!hrt_data_window_targets(data, data->val_source[i].window, windows[i],
                                     &validation->source_targets[i], e->error))
            return false;
        validation->targets += validation->source_targets[i];
    }
    return true;
}

// The losses of all sources, and of each.
static void take_sums(const struct hrt_data *data, double sum[][SUMS],
                      struct hrt_validation *validation) {
    for (int i = 0; i < data->val_sources; i++) {
        validation->loss += sum[i][0];
        for (int k = 1; k < SUMS; k++) validation->named[k - 1] += sum[i][k];
        validation->source_loss[i] =
            sum[i][0] / validation->source_targets[i] * validation->targets;
    }
}

bool hrt_train_evaluate(struct hrt_state *state, const struct hrt_data *data, int64_t sequences,
                        struct hrt_outputs *outputs, struct hrt_validation *validation,
                        struct hrt_error *error) {
    struct evaluation e = {.state = state, .data = data, .outputs = outputs, .error = error};
    double sum[HRT_SOURCES_MAX + 1][SUMS] = {0}; // The last: ranks that could not read.
    int64_t windows[HRT_SOURCES_MAX];
    const int sources = data->val_sources;
    const int64_t all = hrt_data_val_windows(data, sequences, windows);
    *validation = (struct hrt_validation){0};
    e.sound = count_targets(&e, windows, validation);
    if (e.sound && all > 0 && validation->targets == 0)
        return hrt_fail(error, "no token of the validation data counts");
    e.scale = e.sound && validation->targets > 0 ? 1 / validation->targets : 0;
    for (int i = 0; i < sources; i++)
        evaluate_source(&e, data->val_source[i].window, windows[i],
                        i + 1 == sources && outputs && outputs->teacher.path, sum[i]);
    sum[sources][0] = !e.sound;
    if (state->comm && state->comm->size > 1)
        hrt_net_comm_all_reduce(state->comm, sum, sources * SUMS + 1, HRT_DOUBLE);
    if (state->experts) hrt_experts_tokens(state->experts, 0, 0);
    take_sums(data, sum, validation);
    return sum[sources][0] == 0 ||
           (state->comm ? hrt_train_ranks_agree(state->comm, e.sound, error) : e.sound);
}
