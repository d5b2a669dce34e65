// Sampling. A forward computes the tokens that are new, where the program can go on with a sequence, or else the
// whole window. Of a full window the older half is forgotten: all positions move then, and are computed again.
#include "runtime/train/sample.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/bf16.h"
#include "runtime/fssdp/run.h"
#include "runtime/params/tensor.h"
#include "runtime/random/draw.h"

struct candidate {
    double score; // Logit, then weight.
    int32_t id;
};

// Whether tokens are bytes, and so are printed as text: the vocabulary is 256.
static bool tokens_are_bytes(const struct hrt_program *program) {
    return program->vocabulary == 256;
}

// The tokens that the next one is drawn behind: state->ids[0 .. length - 1].
struct window {
    struct hrt_state *state;
    int64_t length;
    int64_t known; // Positions that forwards have computed, and left their keys and values of.
};

// Forgets all but the last `kept` tokens.
static void forget(struct window *w, int64_t kept) {
    int32_t *ids = w->state->ids;
    memmove(ids, ids + w->length - kept, (size_t)kept * sizeof *ids);
    w->length = kept;
    w->known = 0;
}

// Of a prompt the last T tokens are kept.
static void append(struct window *w, int32_t id) {
    const int64_t positions = w->state->program->positions;
    if (w->length == positions) forget(w, positions - 1);
    w->state->ids[w->length++] = id;
}

static bool append_ids(struct window *w, const char *prompt, struct hrt_error *error) {
    const int64_t vocabulary = w->state->program->vocabulary;
    const char *at = prompt;
    while (*(at += strspn(at, " ,\t\n"))) {
        char *end;
        errno = 0;
        const long long id = strtoll(at, &end, 10);
        if (end == at || errno || id < 0 || id >= vocabulary)
            return hrt_fail_usage(error, "the prompt needs token ids below %" PRId64 ", not '%s'",
                                  vocabulary, at);
        append(w, (int32_t)id);
        at = end;
    }
    return w->length > 0 || hrt_fail_usage(error, "the prompt has no token");
}

static bool read_prompt(struct window *w, const char *prompt, struct hrt_error *error) {
    const bool bytes = tokens_are_bytes(w->state->program);
    if (!prompt) prompt = bytes ? "\n" : "0";
    if (!bytes) return append_ids(w, prompt, error);
    for (; *prompt; prompt++) append(w, (unsigned char)*prompt);
    return true;
}

static void print_token(FILE *out, const struct hrt_program *program, int32_t id) {
    if (tokens_are_bytes(program)) {
        fputc(id, out);
    } else {
        fprintf(out, "%" PRId32 " ", id);
    }
}

static int best_first(const void *a, const void *b) {
    const struct candidate *left = a, *right = b;
    if (left->score != right->score) return left->score < right->score ? 1 : -1;
    return (left->id > right->id) - (left->id < right->id);
}

// How many of `kept` candidates, likeliest first, topp and minp leave: at least one. Scores are weights, that of the first one
// is 1.
static int64_t left_of(const struct candidate *candidate, int64_t kept,
                       struct hrt_sample_rule rule) {
    double all = 0, sum = 0;
    for (int64_t i = 0; i < kept; i++) all += candidate[i].score;
    for (int64_t i = 0; i < kept; i++) {
        if (i > 0 && candidate[i].score < rule.minp) return i;
        sum += candidate[i].score;
        if (rule.topp > 0 && sum >= rule.topp * all) return i + 1;
    }
    return kept;
}

// Draws a token by the scores of `candidate` [vocabulary], which it reorders.
static int32_t draw(struct candidate *candidate, int64_t vocabulary, struct hrt_sample_rule rule,
                    uint64_t index) {
    qsort(candidate, (size_t)vocabulary, sizeof *candidate, best_first);
    if (rule.temperature == 0) return candidate[0].id;
    int64_t kept = rule.topk > 0 && rule.topk < vocabulary ? rule.topk : vocabulary;
    const double best = candidate[0].score;
    double sum = 0;
    for (int64_t i = 0; i < kept; i++)
        candidate[i].score = exp((candidate[i].score - best) / rule.temperature);
    kept = left_of(candidate, kept, rule);
    for (int64_t i = 0; i < kept; i++) sum += candidate[i].score;
    const struct hrt_stream stream = hrt_stream_make(rule.seed, "sample", "");
    double left = hrt_draw_uniform(stream, index) * sum;
    int64_t chosen = 0;
    for (; chosen + 1 < kept && left >= candidate[chosen].score; chosen++)
        left -= candidate[chosen].score;
    return candidate[chosen].id;
}

// Computes what is not known of the window. Returns the row of the logits of its last position. Without `seek`
// positions behind it hold token 0, which a causal model does not look at.
static int64_t compute(struct window *w) {
    struct hrt_state *state = w->state;
    const struct hrt_program *program = state->program;
    const int64_t first = program->seek ? w->known : 0;
    hrt_state_await(state);
    for (int64_t i = w->length; i < program->positions; i++) state->ids[i] = 0;
    if (state->fssdp) hrt_fssdp_begin(state->fssdp, false);
    if (program->seek) program->seek(state->model, first, w->length - first);
    program->forward(state->model, 1, state->ids + first, state->targets, 0, 0);
    w->known = w->length;
    return w->length - first - 1;
}

// The scores of the token after the window.
static bool score(struct window *w, struct candidate *candidate, struct hrt_error *error) {
    struct hrt_state *state = w->state;
    const struct hrt_program *program = state->program;
    const int64_t element =
        program->logits_bf16 ? (int64_t)sizeof(hk_bf16) : hrt_element_bytes(program->precision);
    enum { BLOCK = 1024 };
    double block[BLOCK]; // Or floats.
    const char *logits = (const char *)state->arena + program->logits_offset +
                         compute(w) * program->vocabulary * element;
    for (int64_t v = 0; v < program->vocabulary; v++) {
        if (v % BLOCK == 0) {
            const int64_t left = program->vocabulary - v;
            hrt_device_read(&state->device, block, logits + v * element,
                            (size_t)((left < BLOCK ? left : BLOCK) * element), HRT_WHY_VALUES);
        }
        const double of_token = program->logits_bf16
                                    ? hk_bf16_float(((const hk_bf16 *)block)[v % BLOCK])
                                    : hrt_element(block, program->precision, v % BLOCK);
        candidate[v] = (struct candidate){of_token, (int32_t)v};
        if (!isfinite(candidate[v].score))
            return hrt_fail(error, "the model's scores are not finite; nothing can be drawn");
    }
    return true;
}

static bool sample_tokens(struct window *w, int64_t count, struct hrt_sample_rule rule,
                          struct candidate *candidate, FILE *out, struct hrt_error *error) {
    struct hrt_state *state = w->state;
    const int64_t positions = state->program->positions;
    for (int64_t i = 0; i < positions; i++) state->targets[i] = -1;
    for (int64_t n = 0; n < count; n++) {
        if (!score(w, candidate, error)) return false;
        const int32_t id = draw(candidate, state->program->vocabulary, rule, (uint64_t)n);
        if (w->length == positions) forget(w, positions / 2);
        append(w, id);
        print_token(out, state->program, id);
        if (fflush(out) != 0)
            return hrt_fail(error, "cannot write the sample: %s", strerror(errno));
    }
    return true;
}

bool hrt_sample(struct hrt_state *state, const char *prompt, int64_t count,
                struct hrt_sample_rule rule, FILE *out, struct hrt_error *error) {
    const struct hrt_program *program = state->program;
    struct window window = {.state = state};
    if (!read_prompt(&window, prompt, error)) return false;
    struct candidate *candidate = malloc((size_t)program->vocabulary * sizeof *candidate);
    if (!candidate) return hrt_fail(error, "out of memory");

    if (prompt) fprintf(out, "%s%s", prompt, tokens_are_bytes(program) ? "" : " ");
    const bool done = sample_tokens(&window, count, rule, candidate, out, error);
    if (program->seek) program->seek(state->model, 0, program->positions);
    fputc('\n', out);
    free(candidate);
    return done;
}
