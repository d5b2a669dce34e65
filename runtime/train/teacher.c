// Rows of a teacher's files, or weights, become rows of the batch.
#include "runtime/train/teacher.h"

#include <math.h>

// The entries of sequence `index`.
static struct hrt_said rows_of(const struct hrt_state *state, struct hrt_said said, int64_t index) {
    const int64_t first = index * state->program->positions * state->teacher.count;
    return (struct hrt_said){said.ids + first, said.log_probs + first};
}

bool hrt_train_teacher_draw(const struct hrt_state *state, const struct hrt_data *data,
                            uint64_t seed, uint64_t sequence, struct hrt_said said, int64_t index,
                            struct hrt_error *error) {
    if (!state->teacher.count) return true;
    const struct hrt_said rows = rows_of(state, said, index);
    return state->weighted
               ? hrt_data_draw_weights(data, seed, sequence, rows.log_probs, error)
               : hrt_data_draw_teacher(data, seed, sequence, rows.ids, rows.log_probs, error);
}

bool hrt_train_teacher_window(const struct hrt_state *state, const struct hrt_data *data,
                              int64_t window, struct hrt_said said, int64_t index,
                              struct hrt_error *error) {
    if (!state->teacher.count) return true;
    const struct hrt_said rows = rows_of(state, said, index);
    return state->weighted ? hrt_data_window_weights(data, window, rows.log_probs, error)
                           : hrt_data_window_teacher(data, window, rows.ids, rows.log_probs, error);
}

void hrt_train_teacher_blank(const struct hrt_state *state, struct hrt_said said, int64_t index) {
    if (!state->teacher.count) return;
    const struct hrt_said rows = rows_of(state, said, index);
    for (int64_t i = 0; i < state->program->positions * state->teacher.count; i++) {
        rows.ids[i] = 0;
        rows.log_probs[i] = state->weighted ? 0 : -INFINITY;
    }
}
