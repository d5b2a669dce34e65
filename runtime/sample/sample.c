// Samples: a prompt, then token after token.
#include "runtime/sample/sample.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/sample/tail.h"
#include "runtime/sample/window.h"

bool hrt_sample_sampler_open(struct hrt_sampler *sampler, struct hrt_draw_rule rule,
                             int64_t vocabulary, const char *tokenizer, const char *stop,
                             struct hrt_error *error) {
    *sampler = (struct hrt_sampler){.rule = rule, .stop = stop, .end = -1};
    if (stop && !*stop) return hrt_fail_usage(error, "--stop: the text is empty");
    if (!hrt_sample_words_open(&sampler->words, vocabulary, tokenizer, error)) return false;
    if (stop && !hrt_sample_words_are_text(&sampler->words))
        return hrt_fail_usage(error, "--stop needs text: give --tokenizer FILE");
    if (stop && sampler->words.tokenizer)
        sampler->end = hrt_tokenizer_find(sampler->words.tokenizer, stop);
    return true;
}

void hrt_sample_sampler_close(struct hrt_sampler *sampler) {
    hrt_sample_words_close(&sampler->words);
}

static bool fail_output(struct hrt_error *error) {
    return hrt_fail(error, "cannot write the sample: %s", strerror(errno));
}

static bool draw_tokens(struct hrt_sampler *sampler, struct hrt_window *window, bool alone,
                        int64_t count, struct hrt_candidate *candidate, struct hrt_tail *tail,
                        struct hrt_error *error) {
    const int64_t vocabulary = sampler->words.vocabulary;
    for (int64_t n = 0; n < count && !tail->ended; n++) {
        if (!hrt_sample_window_score(window, candidate, error)) return false;
        const int32_t id = hrt_sample_draw_token(candidate, vocabulary, sampler->rule, (uint64_t)n);
        if (id == sampler->end || hrt_sample_words_end(&sampler->words, id)) break;
        hrt_sample_window_append(window, id);
        const struct hrt_piece piece = hrt_sample_words_write(&sampler->words, id, alone && n == 0);
        if (!piece.special && !hrt_sample_tail_add(tail, piece.text, piece.bytes))
            return fail_output(error);
    }
    return true;
}

static bool continue_prompt(struct hrt_sampler *sampler, struct hrt_state *state,
                            const char *prompt, const struct hrt_ids *ids, int64_t count, FILE *out,
                            struct hrt_error *error) {
    struct hrt_window window = {.state = state};
    struct hrt_tail tail = {.out = out, .stop = sampler->end < 0 ? sampler->stop : NULL};
    struct hrt_candidate *candidate = malloc((size_t)sampler->words.vocabulary * sizeof *candidate);
    if (!candidate) return hrt_fail(error, "out of memory");
    hrt_sample_window_begin(&window, ids->at, (int64_t)ids->count);
    if (prompt) fprintf(out, "%s%s", prompt, hrt_sample_words_are_text(&sampler->words) ? "" : " ");
    bool done = draw_tokens(sampler, &window, !prompt, count, candidate, &tail, error);
    hrt_sample_window_end(&window);
    if (!hrt_sample_tail_end(&tail) && done) done = fail_output(error);
    if (done && (fputc('\n', out) == EOF || fflush(out) != 0)) done = fail_output(error);
    free(candidate);
    return done;
}

bool hrt_sample(struct hrt_sampler *sampler, struct hrt_state *state, const char *prompt,
                int64_t count, FILE *out, struct hrt_error *error) {
    struct hrt_ids ids = {0};
    const bool done = hrt_sample_words_read(&sampler->words, prompt, &ids, error) &&
                      continue_prompt(sampler, state, prompt, &ids, count, out, error);
    free(ids.at);
    return done;
}
