// The tokens that a model sees when the next one is drawn, and its scores of that.
#ifndef HECATE_RUNTIME_SAMPLE_WINDOW_H
#define HECATE_RUNTIME_SAMPLE_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/error.h"
#include "runtime/params/state.h"
#include "runtime/sample/draw.h"

// T positions at most. Zeroed with a state it is empty.
struct hrt_window {
    struct hrt_state *state; // Its `ids` are the tokens: [length].
    int64_t length;
    int64_t known; // Positions that forwards have computed, and left their keys and values of.
};

// For a prompt, whose last T tokens stay.
void hrt_sample_window_begin(struct hrt_window *window, const int32_t *ids, int64_t count);

// Appends a token that was drawn. A full window forgets its older half before: all positions move, and are computed
// again.
void hrt_sample_window_append(struct hrt_window *window, int32_t id);

// The scores of the token behind a window that has one: `candidate` [vocabulary]. A forward computes the tokens that
// are new, where the program can go on with a sequence, or else the whole window. All ranks call it. False: a score is
// not finite.
bool hrt_sample_window_score(struct hrt_window *window, struct hrt_candidate *candidate,
                             struct hrt_error *error);

// The state as other forwards need it.
void hrt_sample_window_end(struct hrt_window *window);

#endif
