// A heap gives candidates likeliest first, as many as are needed: of a large vocabulary mostly a few.
#include "runtime/sample/draw.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>

#include "runtime/base/random.h"

struct heap {
    struct hrt_candidate
        *at; // [all]: a heap of those that are left, then those that were taken, likeliest last.
    int64_t left, all;
};

static bool is_before(const struct hrt_candidate *a, const struct hrt_candidate *b) {
    return a->score != b->score ? a->score > b->score : a->id < b->id;
}

static void sink(struct heap *heap, int64_t at) {
    const struct hrt_candidate sunk = heap->at[at];
    for (int64_t below; (below = 2 * at + 1) < heap->left; at = below) {
        if (below + 1 < heap->left && is_before(&heap->at[below + 1], &heap->at[below])) below++;
        if (!is_before(&heap->at[below], &sunk)) break;
        heap->at[at] = heap->at[below];
    }
    heap->at[at] = sunk;
}

static struct heap make_heap(struct hrt_candidate *candidate, int64_t count) {
    struct heap heap = {candidate, count, count};
    for (int64_t i = count / 2 - 1; i >= 0; i--) sink(&heap, i);
    return heap;
}

// The candidate with `index` likelier ones: at most one behind those that were asked for.
static struct hrt_candidate likely(struct heap *heap, int64_t index) {
    if (index == heap->all - heap->left) {
        const struct hrt_candidate taken = heap->at[0];
        heap->at[0] = heap->at[--heap->left];
        heap->at[heap->left] = taken;
        sink(heap, 0);
    }
    return heap->at[heap->all - 1 - index];
}

static int64_t likeliest(const struct hrt_candidate *candidate, int64_t count) {
    int64_t found = 0;
    for (int64_t i = 1; i < count; i++) {
        if (is_before(&candidate[i], &candidate[found])) found = i;
    }
    return found;
}

// Turns scores into weights, that of the likeliest one 1, and returns their sum.
static double weigh(struct hrt_candidate *candidate, int64_t count, double temperature) {
    const double best = candidate[likeliest(candidate, count)].score;
    double sum = 0;
    for (int64_t i = 0; i < count; i++) {
        candidate[i].score = exp((candidate[i].score - best) / temperature);
        sum += candidate[i].score;
    }
    return sum;
}

// The candidates for drawing, likeliest first, and the sum of their weights.
struct choice {
    int64_t count;
    double sum;
};

static struct choice choose(struct heap *heap, double all, struct hrt_draw_rule rule) {
    const int64_t most = rule.topk > 0 && rule.topk < heap->all ? rule.topk : heap->all;
    const bool cuts = rule.topp > 0 && rule.topp < 1;
    if (most == heap->all && !cuts && rule.minp <= 0) return (struct choice){most, all};
    if (most < heap->all) {
        all = 0;
        for (int64_t i = 0; i < most; i++) all += likely(heap, i).score;
    }
    struct choice kept = {0};
    while (kept.count < most) {
        const double weight = likely(heap, kept.count).score;
        if (kept.count > 0 && weight < rule.minp) break;
        kept.sum += weight;
        kept.count++;
        if (cuts && kept.sum >= rule.topp * all) break;
    }
    return kept;
}

int32_t hrt_sample_draw_token(struct hrt_candidate *candidate, int64_t vocabulary,
                              struct hrt_draw_rule rule, uint64_t index) {
    if (rule.temperature == 0) return candidate[likeliest(candidate, vocabulary)].id;
    const double all = weigh(candidate, vocabulary, rule.temperature);
    struct heap heap = make_heap(candidate, vocabulary);
    const struct choice kept = choose(&heap, all, rule);
    char which[24] = ""; // The first sample, and the only one.
    if (rule.sample > 0) snprintf(which, sizeof which, "%" PRIu64, rule.sample);
    double left = hrt_draw_uniform(hrt_stream_make(rule.seed, "sample", which), index) * kept.sum;
    int64_t i = 0;
    for (; i + 1 < kept.count && left >= likely(&heap, i).score; i++)
        left -= likely(&heap, i).score;
    return likely(&heap, i).id;
}
