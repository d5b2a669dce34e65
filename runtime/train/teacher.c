// Rows of a teacher's files become rows of the batch.
#include "runtime/train/teacher.h"

#include <math.h>

struct rows {
    int32_t *ids;
    float *log_probs;
    int64_t count;
};

static struct rows rows_of(const struct hrt_state *state, int64_t index) {
    const int64_t count = state->program->positions * state->teacher.count;
    return (struct rows){state->teacher_ids + index * count,
                         state->teacher_log_probs + index * count, count};
}

bool hrt_teacher_draw(const struct hrt_state *state, const struct hrt_data *data, uint64_t seed,
                      uint64_t sequence, int64_t index, struct hrt_error *error) {
    if (!state->teacher.count) return true;
    const struct rows rows = rows_of(state, index);
    return hrt_data_draw_teacher(data, seed, sequence, rows.ids, rows.log_probs, error);
}

bool hrt_teacher_window(const struct hrt_state *state, const struct hrt_data *data, int64_t window,
                        int64_t index, struct hrt_error *error) {
    if (!state->teacher.count) return true;
    const struct rows rows = rows_of(state, index);
    return hrt_data_window_teacher(data, window, rows.ids, rows.log_probs, error);
}

void hrt_teacher_blank(const struct hrt_state *state, int64_t index) {
    if (!state->teacher.count) return;
    const struct rows rows = rows_of(state, index);
    for (int64_t i = 0; i < rows.count; i++) {
        rows.ids[i] = 0;
        rows.log_probs[i] = -INFINITY;
    }
}
