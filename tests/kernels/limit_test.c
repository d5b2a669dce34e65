// limit against a sort: which rows stay, in which order, and where the others are.
#include "kernels/limit/limit.h"

#include <stdlib.h>

#include "kernels/route/route.h"
#include "tests/kernels/kernel_case.h"

static const struct limit_shape {
    int64_t tokens, topk, experts;
    double capacity;
    int64_t group; // Tokens; 0: all.
} shapes[] = {{0, 2, 4, 1, 0},     {1, 1, 1, 1, 0},      {24, 2, 8, 1, 0},   {50, 3, 7, 0.5, 0},
              {64, 4, 4, 1.25, 0}, {40, 2, 16, 0.01, 0}, {33, 1, 5, 9, 0},   {24, 2, 8, 1, 6},
              {50, 3, 7, 0.5, 20}, {64, 4, 4, 0.75, 1},  {40, 2, 4, 1, 100}, {400, 2, 3, 0.5, 0},
              {40, 2, 300, 4, 0}};

struct limit_case {
    struct limit_shape shape;
    enum hk_drop drop;
    const real *weights;
    const int32_t *ids, *first, *pair;
};

// All results as reals, so that they are compared over numbers of threads.
static void run(const void *context, real *out) {
    const struct limit_case *x = context;
    const int64_t picks = x->shape.tokens * x->shape.topk, experts = x->shape.experts;
    int32_t *first = test_ints(experts + 1, 1, 0), *pair = test_ints(picks, 1, 0);
    int32_t *slot = test_ints(picks, 1, 0);
    HK(limit, first, pair, slot, x->weights, x->first, x->pair, x->shape.tokens, x->shape.topk,
       experts, x->shape.group, x->shape.capacity, x->drop);
    for (int64_t e = 0; e <= experts; e++) *out++ = (real)first[e];
    for (int64_t p = 0; p < picks; p++) *out++ = (real)pair[p];
    for (int64_t p = 0; p < picks; p++) *out++ = (real)slot[p];
}

static struct limit_case limit_case(struct limit_shape shape, enum hk_drop drop) {
    const int64_t picks = shape.tokens * shape.topk;
    struct limit_case x = {.shape = shape, .drop = drop};
    real *weights = test_reals(picks, 3);
    for (int64_t p = 0; p < picks; p++) {
        weights[p] = (weights[p] + 1) / 2;
        if (p % 3 == 0) weights[p] = (real)0.25; // Equal ones.
    }
    if (picks > 9) weights[7] = NAN;
    int32_t *ids = test_ints(picks, (int32_t)shape.experts, 1);
    for (int64_t p = 0; p < picks; p += 2) ids[p] = 0; // One expert has far too many.
    int32_t *first = test_ints(shape.experts + 1, 1, 0), *pair = test_ints(picks, 1, 0);
    hk_route(first, pair, test_ints(picks, 1, 0), ids, shape.tokens, shape.topk, shape.experts);
    x.weights = weights;
    x.ids = ids;
    x.first = first;
    x.pair = pair;
    return x;
}

static const real *ranked_weights;

// Those that stay come first: the larger weight, then the earlier.
static int compare(const void *a, const void *b) {
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    const real u = ranked_weights[x] > 0 ? ranked_weights[x] : 0;
    const real v = ranked_weights[y] > 0 ? ranked_weights[y] : 0;
    if (u != v) return u > v ? -1 : 1;
    return x - y;
}

static int compare_index(const void *a, const void *b) {
    return *(const int32_t *)a - *(const int32_t *)b;
}

// ceil(capacity * tokens of the token's group * topk / experts), and where the group ends.
static int64_t most_of(const struct limit_shape *shape, int64_t token, int64_t *end) {
    const int64_t group = shape->group ? shape->group : shape->tokens;
    const int64_t first = token / group * group;
    *end = first + group < shape->tokens ? first + group : shape->tokens;
    return (int64_t)ceil(shape->capacity * (double)((*end - first) * shape->topk) /
                         (double)shape->experts);
}

// Among `rows` pairs of one expert and group, those that stay begin at `row`. Returns where they end.
static int64_t check_group(const struct limit_case *x, const int32_t *pairs, int64_t rows,
                           int64_t most, int64_t row, const real *pair, const real *slot) {
    const int64_t kept = rows < most ? rows : most;
    int32_t *order = test_ints(rows, 1, 0);
    for (int64_t r = 0; r < rows; r++) order[r] = pairs[r];
    if (x->drop == HK_LOWEST) qsort(order, (size_t)rows, sizeof *order, compare);
    qsort(order, (size_t)kept, sizeof *order, compare_index);
    for (int64_t r = 0; r < rows; r++) {
        assert_int_equal((int64_t)slot[order[r]], r < kept ? row : -1);
        if (r < kept) assert_int_equal((int64_t)pair[row++], order[r]);
    }
    return row;
}

static void check_limit(const struct limit_case *x) {
    const int64_t picks = x->shape.tokens * x->shape.topk, experts = x->shape.experts;
    const int64_t count = experts + 1 + 2 * picks;
    real *out = test_nans(count);
    run_with_threads(run, x, out, count);
    const real *first = out, *pair = first + experts + 1, *slot = pair + picks;
    int64_t row = 0;
    ranked_weights = x->weights;
    for (int64_t e = 0; e < experts; e++) {
        const int32_t *own = x->pair + x->first[e];
        const int64_t rows = x->first[e + 1] - x->first[e];
        assert_int_equal((int64_t)first[e], row);
        for (int64_t r = 0, end = 0; r < rows; r = end) {
            const int64_t most = most_of(&x->shape, own[r] / x->shape.topk, &end);
            const int64_t limit = end * x->shape.topk;
            for (end = r; end < rows && own[end] < limit;) end++;
            row = check_group(x, own + r, end - r, most, row, pair, slot);
        }
    }
    assert_int_equal((int64_t)first[experts], row);
    bool *seen = calloc((size_t)picks + 1, sizeof *seen);
    for (int64_t r = 0; r < picks; r++) {
        assert_in_range((int64_t)pair[r], 0, picks - 1);
        assert_false(seen[(int64_t)pair[r]]);
        seen[(int64_t)pair[r]] = true;
    }
    free(seen);
}

static void experts_keep_what_they_have_room_for(void **state) {
    (void)state;
    for (int64_t s = 0; s < COUNT(shapes) * 2; s++) {
        const struct limit_case x = limit_case(shapes[s / 2], s % 2 ? HK_POSITION : HK_LOWEST);
        check_limit(&x);
        test_free_all();
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(experts_keep_what_they_have_room_for)};
    return RUN_KERNEL_TESTS(tests);
}
