// Teacher entries, or weights, of the sequences of a batch, from files to where the model's losses read them.
#ifndef HECATE_RUNTIME_TRAIN_TEACHER_H
#define HECATE_RUNTIME_TRAIN_TEACHER_H

#include "runtime/data/data.h"
#include "runtime/params/state.h"

// Copies the entries, or weights, of training sequence number `sequence`, or of validation window `window`, to those of
// sequence `index` of `said`. Nothing to do where the state has neither.
bool hrt_train_teacher_draw(const struct hrt_state *state, const struct hrt_data *data,
                            uint64_t seed, uint64_t sequence, struct hrt_said said, int64_t index,
                            struct hrt_error *error);
bool hrt_train_teacher_window(const struct hrt_state *state, const struct hrt_data *data,
                              int64_t window, struct hrt_said said, int64_t index,
                              struct hrt_error *error);

// Clears the entries of sequence `index` of `said`: no token has any.
void hrt_train_teacher_blank(const struct hrt_state *state, struct hrt_said said, int64_t index);

#endif
