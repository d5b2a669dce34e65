// Drawing text from a model, one token after the other.
#ifndef HECATE_RUNTIME_TRAIN_SAMPLE_H
#define HECATE_RUNTIME_TRAIN_SAMPLE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "runtime/base/error.h"
#include "runtime/train/state.h"

struct hrt_sample_rule {
    double temperature; // 0: the likeliest token, the lower of equals.
    int64_t topk;       // Draw among this many likeliest; 0: all;
    double topp;        // of these among the fewest whose shares come to it; 0: all;
    double minp;        // of these among those with at least this share of the likeliest one's.
    uint64_t seed;
};

// Prints `prompt` and `count` tokens after it to `out`: as text, or as ids with blanks between
// them. The model sees at most T tokens: of a longer prompt the last ones; when they are T and more
// follow, the older half is forgotten. The prompt is text or ids in the same form; NULL: a newline, or id 0. Token n comes from (seed, n): the same words for the same parameters.
// False: the prompt has something that is no token, the logits are not finite, or `out` fails.
bool hrt_sample(struct hrt_state *state, const char *prompt, int64_t count,
                struct hrt_sample_rule rule, FILE *out, struct hrt_error *error);

#endif
