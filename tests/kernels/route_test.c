// route: the order of rows, and the movements by it, which are exact.
#include "kernels/route/route.h"

#include "tests/kernels/kernel_case.h"

enum { tokens = 45, topk = 3, pairs = tokens * topk, experts = 9 };

static const int64_t widths[] = {1, 17, 64, 300, 1032};

struct route {
    int32_t *first, *pair, *slot;
    const int32_t *ids;
};

static struct route route_of(int32_t used) {
    const struct route r = {.first = test_ints(experts + 1, 1, 0),
                            .pair = test_ints(pairs, 1, 0),
                            .slot = test_ints(pairs, 1, 0),
                            .ids = test_ints(pairs, used, 1)};
    HK_INTS(route, r.first, r.pair, r.slot, r.ids, tokens, topk, experts);
    return r;
}

static void rows_are_ordered_by_expert_token_choice(void **state) {
    (void)state;
    for (int32_t used = 1; used <= experts; used += 4) { // Fewer used: experts without rows.
        const struct route r = route_of(used);
        int32_t row = 0;
        for (int32_t e = 0; e < experts; e++) {
            assert_int_equal(r.first[e], row);
            for (int32_t p = 0; p < pairs; p++) {
                if (r.ids[p] != e) continue;
                assert_int_equal(r.pair[row], p);
                assert_int_equal(r.slot[p], row);
                row++;
            }
        }
        assert_int_equal(r.first[experts], pairs);
        test_free_all();
    }
}

static void no_tokens_make_no_rows(void **state) {
    (void)state;
    int32_t *first = test_ints(experts + 1, 2, 1);
    HK_INTS(route, first, NULL, NULL, NULL, 0, topk, experts);
    for (int e = 0; e <= experts; e++) assert_int_equal(first[e], 0);
    test_free_all();
}

// More than a device counts at once, of few and of many experts; every seventh choice is dropped.
static void many_rows_are_ordered_too(void **state) {
    (void)state;
    static const int32_t sizes[][2] = {{1500, 3}, {700, 300}}; // tokens, experts
    for (int64_t s = 0; s < COUNT(sizes); s++) {
        const int32_t count = sizes[s][0] * topk, used = sizes[s][1];
        int32_t *ids = test_ints(count, used, 4), *next = test_ints(used + 1, 1, 0);
        int32_t *first = test_ints(used + 1, 2, 0), *pair = test_ints(count, 2, 0);
        int32_t *slot = test_ints(count, 2, 0), behind = 0;
        for (int32_t p = 0; p < count; p += 7) ids[p] = -1;
        HK_INTS(route, first, pair, slot, ids, sizes[s][0], topk, used);
        for (int32_t p = 0; p < count; p++) {
            if (ids[p] >= 0) next[ids[p] + 1]++;
        }
        for (int32_t e = 0; e < used; e++) next[e + 1] += next[e];
        for (int32_t e = 0; e <= used; e++) assert_int_equal(first[e], next[e]);
        for (int32_t p = 0; p < count; p++) {
            const int32_t row = ids[p] < 0 ? first[used] + behind++ : next[ids[p]]++;
            assert_int_equal(pair[row], p);
            assert_int_equal(slot[p], ids[p] < 0 ? -1 : row);
        }
        test_free_all();
    }
}

struct move_case {
    struct route route;
    int64_t width;
    enum hk_write write;
    const real *x;
};

static void run_permute(const void *context, real *out) {
    const struct move_case *x = context;
    HK(permute, out, x->x, x->route.pair, tokens, topk, x->width);
}

static void run_combine(const void *context, real *out) {
    const struct move_case *x = context;
    HK(combine, out, x->x, x->route.slot, tokens, topk, x->width, x->write);
}

static void permute_copies_tokens(void **state) {
    (void)state;
    for (int64_t s = 0; s < COUNT(widths); s++) {
        struct move_case x = {.route = route_of(experts), .width = widths[s]};
        x.x = test_reals(tokens * x.width, 2);
        real *rows = test_nans(pairs * x.width);
        run_with_threads(run_permute, &x, rows, pairs * x.width);
        for (int64_t r = 0; r < pairs; r++) {
            const int64_t t = x.route.pair[r] / topk;
            assert_same_bits("rows", rows + r * x.width, x.x + t * x.width, x.width);
        }
        test_free_all();
    }
}

static void combine_adds_choices_in_order(void **state) {
    (void)state;
    for (int64_t s = 0; s < COUNT(widths) * 2; s++) {
        struct move_case x = {.route = route_of(experts), .width = widths[s / 2]};
        x.write = s % 2 ? HK_ADD : HK_STORE;
        x.x = test_reals(pairs * x.width, 2);
        for (int p = 0; p < pairs; p += 5) x.route.slot[p] = -1;
        for (int p = 0; p < topk; p++) x.route.slot[p] = -1; // A token that lost all its choices.
        const int64_t size = tokens * x.width;
        real *y = s % 2 ? test_reals(size, 3) : test_nans(size), *want = test_copy(y, size);
        for (int64_t i = 0; i < size; i++) {
            real sum = 0;
            for (int64_t j = 0; j < topk; j++) {
                const int64_t r = x.route.slot[i / x.width * topk + j];
                if (r >= 0) sum += x.x[r * x.width + i % x.width];
            }
            want[i] = (x.write == HK_ADD ? want[i] : 0) + sum;
        }
        run_with_threads(run_combine, &x, y, size);
        assert_same_bits("y", y, want, size);
        test_free_all();
    }
}

static void gate_weights_move_to_rows_and_back(void **state) {
    (void)state;
    struct route r = route_of(experts);
    const real *weights = test_reals(pairs, 2);
    real *g = test_nans(pairs), *back = test_nans(pairs);
    HK(gate_rows, g, weights, r.pair, pairs);
    for (int i = 0; i < pairs; i++) assert_true(g[i] == weights[r.pair[i]]);
    r.slot[7] = -1;
    HK(gate_rows_grad, back, g, r.slot, pairs);
    for (int i = 0; i < pairs; i++) assert_true(back[i] == (i == 7 ? 0 : weights[i]));
    test_free_all();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_ordered_by_expert_token_choice),
        cmocka_unit_test(no_tokens_make_no_rows),
        cmocka_unit_test(many_rows_are_ordered_too),
        cmocka_unit_test(permute_copies_tokens),
        cmocka_unit_test(combine_adds_choices_in_order),
        cmocka_unit_test(gate_weights_move_to_rows_and_back),
    };
    return RUN_KERNEL_TESTS(tests);
}
