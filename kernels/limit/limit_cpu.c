// CPU twin of limit: one expert after the other, the weight that just stays by bisection.
#include "kernels/limit/limit.h"

#include <math.h>

#include "kernels/cpu/real.h"

// A whole number that orders weights as they are: the bits of a double that is not negative.
static int64_t order_of(real weight) {
    const double value = weight > 0 ? (double)weight : 0;
    int64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static int64_t count_from(int64_t least, const real *weights, const int32_t *pair, int64_t rows) {
    int64_t count = 0;
    for (int64_t r = 0; r < rows; r++) count += order_of(weights[pair[r]]) >= least;
    return count;
}

// The order of the lowest weight among the `most` largest of `rows`; most <= rows.
static int64_t lowest_kept(const real *weights, const int32_t *pair, int64_t rows, int64_t most) {
    int64_t least = 0;
    for (int bit = 62; bit >= 0; bit--) {
        const int64_t higher = least | (int64_t)1 << bit;
        if (count_from(higher, weights, pair, rows) >= most) least = higher;
    }
    return least;
}

// Sorts rows of one expert into kept ones, from row `row` on, and dropped ones, from `behind`.
static void limit_expert(int32_t *kept_pair, int32_t *kept_slot, const real *weights,
                         const int32_t *pair, int64_t rows, int64_t most, int64_t row,
                         int64_t behind, enum hk_drop drop) {
    const bool weighs = rows > most && drop == HK_LOWEST;
    const int64_t least = weighs ? lowest_kept(weights, pair, rows, most) : 0;
    // Room for pairs that weigh as much as the lowest.
    int64_t room = weighs ? most - count_from(least + 1, weights, pair, rows) : most;
    for (int64_t r = 0; r < rows; r++) {
        const int64_t order = weighs ? order_of(weights[pair[r]]) : least;
        const bool equal = order == least;
        const bool kept = order > least || (equal && room > 0);
        room -= kept && equal;
        kept_slot[pair[r]] = kept ? (int32_t)row : -1;
        kept_pair[kept ? row++ : behind++] = pair[r];
    }
}

// Where the rows of one expert that are of pairs below `end` end, from row `from` on: pairs ascend.
static int64_t rows_below(const int32_t *pair, int64_t from, int64_t rows, int64_t end) {
    while (from < rows && pair[from] < end) from++;
    return from;
}

struct groups {
    int64_t tokens, topk, experts, size; // size: tokens of a group.
    double capacity;
};

// Rows that an expert keeps of the group of tokens from `first` on, at most.
static int64_t most_of(const struct groups *groups, int64_t first) {
    const int64_t left = groups->tokens - first;
    const int64_t tokens = left < groups->size ? left : groups->size;
    return (int64_t)ceil(groups->capacity * (double)(tokens * groups->topk) /
                         (double)groups->experts);
}

// Rows that an expert keeps of all groups.
static int64_t count_kept(const struct groups *groups, const int32_t *pair, int64_t rows) {
    int64_t kept = 0, row = 0;
    for (int64_t first = 0; first < groups->tokens; first += groups->size) {
        const int64_t end = rows_below(pair, row, rows, (first + groups->size) * groups->topk);
        const int64_t most = most_of(groups, first);
        kept += end - row < most ? end - row : most;
        row = end;
    }
    return kept;
}

HK_KERNEL(void, limit,
          (int32_t * kept_first, int32_t *kept_pair, int32_t *kept_slot, const real *weights,
           const int32_t *first, const int32_t *pair, int64_t tokens, int64_t topk, int64_t experts,
           int64_t group, double capacity, enum hk_drop drop),
          (kept_first, kept_pair, kept_slot, weights, first, pair, tokens, topk, experts, group,
           capacity, drop),
          HK_PASS(tokens *topk, 3 * tokens * topk, "tokens topk experts", tokens, topk, experts)) {
    const struct groups groups = {tokens, topk, experts, group ? group : tokens, capacity};
    kept_first[0] = 0;
    for (int64_t e = 0; e < experts; e++) {
        const int64_t kept = count_kept(&groups, pair + first[e], first[e + 1] - first[e]);
        kept_first[e + 1] = kept_first[e] + (int32_t)kept;
    }
#pragma omp parallel for schedule(static)
    for (int64_t e = 0; e < experts; e++) {
        const int32_t *own = pair + first[e];
        const int64_t rows = first[e + 1] - first[e];
        int64_t kept = kept_first[e], dropped = kept_first[experts] + first[e] - kept_first[e];
        for (int64_t t = 0, row = 0; t < tokens; t += groups.size) {
            const int64_t end = rows_below(own, row, rows, (t + groups.size) * topk);
            const int64_t here = end - row, most = most_of(&groups, t);
            limit_expert(kept_pair, kept_slot, weights, own + row, here, most, kept, dropped, drop);
            kept += here < most ? here : most;
            dropped += here < most ? 0 : here - most;
            row = end;
        }
    }
}
