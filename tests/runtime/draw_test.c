// Unit test of runtime/sample/draw: against all candidates in order.
#include "runtime/sample/draw.h"

#include <math.h>

#include "runtime/base/random.h"
#include "tests/runtime/support/case.h"

enum { MOST = 700 };

static int best_first(const void *a, const void *b) {
    const struct hrt_candidate *left = a, *right = b;
    if (left->score != right->score) return left->score < right->score ? 1 : -1;
    return (left->id > right->id) - (left->id < right->id);
}

// How many of the first `count`, likeliest first, may be drawn.
static int64_t kept_of(const struct hrt_candidate *sorted, int64_t count,
                       struct hrt_draw_rule rule) {
    double all = 0, sum = 0;
    if (rule.topk > 0 && rule.topk < count) count = rule.topk;
    for (int64_t i = 0; i < count; i++) all += sorted[i].score;
    for (int64_t i = 0; i < count; i++) {
        if (i > 0 && sorted[i].score < rule.minp) return i;
        sum += sorted[i].score;
        if (rule.topp > 0 && rule.topp < 1 && sum >= rule.topp * all) return i + 1;
    }
    return count;
}

// As the rule says it, of weights in order.
static int32_t expected(struct hrt_candidate *sorted, int64_t count, struct hrt_draw_rule rule,
                        uint64_t index) {
    qsort(sorted, (size_t)count, sizeof *sorted, best_first);
    if (rule.temperature == 0) return sorted[0].id;
    const double best = sorted[0].score;
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sorted[i].score = exp((sorted[i].score - best) / rule.temperature);
    const int64_t kept = kept_of(sorted, count, rule);
    for (int64_t i = 0; i < kept; i++) sum += sorted[i].score;
    double left = hrt_draw_uniform(hrt_stream_make(rule.seed, "sample", ""), index) * sum;
    int64_t i = 0;
    for (; i + 1 < kept && left >= sorted[i].score; i++) left -= sorted[i].score;
    return sorted[i].id;
}

// Scores with equal ones among them.
static int64_t fill(struct hrt_candidate *candidate, uint64_t seed) {
    const struct hrt_stream stream = hrt_stream_make(seed, "scores", "");
    const int64_t count = 1 + (int64_t)(hrt_draw_uniform(stream, 0) * (MOST - 1));
    for (int64_t i = 0; i < count; i++) {
        const double score = 8 * hrt_draw_uniform(stream, (uint64_t)i + 1);
        candidate[i] = (struct hrt_candidate){i % 3 ? score : floor(score), (int32_t)i};
    }
    return count;
}

static void draws_are_those_of_the_rule(void **state) {
    (void)state;
    struct hrt_candidate one[MOST], other[MOST];
    static const struct hrt_draw_rule rules[] = {
        {.temperature = 0},
        {.temperature = 0.7, .topp = 1},
        {.temperature = 40},
        {.temperature = 1, .topk = 1},
        {.temperature = 1, .topk = 20},
        {.temperature = 2, .topk = 5000},
        {.temperature = 1, .topp = 0.3},
        {.temperature = 3, .topk = 50, .topp = 0.9},
        {.temperature = 1, .minp = 0.2},
        {.temperature = 2, .topk = 30, .topp = 0.8, .minp = 0.3},
        {.temperature = 1e-3},
    };
    for (uint64_t seed = 0; seed < 300; seed++) {
        for (size_t r = 0; r < sizeof rules / sizeof *rules; r++) {
            struct hrt_draw_rule rule = rules[r];
            rule.seed = seed;
            const int64_t count = fill(one, seed);
            fill(other, seed);
            assert_int_equal(hrt_sample_draw_token(one, count, rule, r),
                             expected(other, count, rule, r));
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(draws_are_those_of_the_rule)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
