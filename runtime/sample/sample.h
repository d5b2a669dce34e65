// Drawing text from a model, one token after the other.
#ifndef HECATE_RUNTIME_SAMPLE_SAMPLE_H
#define HECATE_RUNTIME_SAMPLE_SAMPLE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "runtime/base/error.h"
#include "runtime/params/state.h"
#include "runtime/sample/draw.h"
#include "runtime/sample/words.h"

struct hrt_sampler {
    struct hrt_draw_rule rule;
    struct hrt_words words;
    const char *stop; // Ends a sample, which then has it no more; NULL: nothing does. Borrowed.
    int32_t end;      // The token that `stop` is; -1: it is text.
};

// `tokenizer`: the tokenizer.json that texts go through; NULL: tokens are bytes where the vocabulary is 256, or else
// ids. False: it cannot be read, or `stop` is empty. Close it in either case.
bool hrt_sample_sampler_open(struct hrt_sampler *sampler, struct hrt_draw_rule rule,
                             int64_t vocabulary, const char *tokenizer, const char *stop,
                             struct hrt_error *error);

// Also of a zeroed one.
void hrt_sample_sampler_close(struct hrt_sampler *sampler);

// Prints `prompt` and the tokens drawn behind it to `out`: `count` tokens, fewer where the stop text or a token that
// ends texts comes before. The model sees at most T tokens: of a longer prompt the last ones; when they are T and more
// follow, the older half is forgotten. A `prompt` of NULL is what hrt_sample_words_read says. Token n comes from (seed,
// sample, n) of the rule: the same words for the same parameters. All ranks call it. False: the prompt has
// something that is no token, the logits are not finite, or `out` fails.
bool hrt_sample(struct hrt_sampler *sampler, struct hrt_state *state, const char *prompt,
                int64_t count, FILE *out, struct hrt_error *error);

#endif
