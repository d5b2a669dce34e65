// Rows of bf16 values, which only CUDA has: moved exactly, summed in float and rounded once.
#include "kernels/launchers.h"
#include "tests/kernels/kernel_case.h"

enum { tokens = 45, topk = 3, pairs = tokens * topk, experts = 9 };

static const int64_t widths[] = {1, 17, 64, 300, 1032};

struct rows_case {
    int64_t width;
    enum hk_write write;
    const int32_t *pair;
    int32_t *slot;
    const hk_bf16 *from;
};

// Seeded values that bf16 can hold.
static hk_bf16 *values(int64_t count, uint64_t seed) {
    const real *from = test_reals(count, seed);
    hk_bf16 *to = test_array(count, sizeof *to);
    for (int64_t i = 0; i < count; i++) to[i] = hk_bf16_round(from[i]);
    return to;
}

static struct rows_case rows_case(int64_t width) {
    int32_t *first = test_ints(experts + 1, 1, 0), *pair = test_ints(pairs, 1, 0);
    int32_t *slot = test_ints(pairs, 1, 0);
    HK_INTS(route, first, pair, slot, test_ints(pairs, experts, 1), tokens, topk, experts);
    return (struct rows_case){
        .width = width, .pair = pair, .slot = slot, .from = values(pairs * width, 2)};
}

// Results lie in an array of floats, two in each.
static void run_permute(const void *context, real *out) {
    const struct rows_case *x = context;
    hkc_permute_bf16(test_lane(), (hk_bf16 *)out, x->from, x->pair, tokens, topk, x->width);
    test_join("permute");
}

static void run_combine(const void *context, real *out) {
    const struct rows_case *x = context;
    hkc_combine_bf16(test_lane(), (hk_bf16 *)out, x->from, x->slot, tokens, topk, x->width,
                     x->write);
    test_join("combine");
}

static void permute_copies_tokens(void **state) {
    (void)state;
    for (int64_t s = 0; s < COUNT(widths); s++) {
        const struct rows_case x = rows_case(widths[s]);
        const int64_t count = (pairs * x.width + 1) / 2;
        real *out = test_nans(count);
        run_with_threads(run_permute, &x, out, count);
        const hk_bf16 *rows = (const hk_bf16 *)out;
        for (int64_t r = 0; r < pairs; r++) {
            assert_memory_equal(rows + r * x.width, x.from + x.pair[r] / topk * x.width,
                                (size_t)x.width * sizeof *rows);
        }
        test_free_all();
    }
}

static void combine_rounds_the_sum_once(void **state) {
    (void)state;
    for (int64_t s = 0; s < COUNT(widths) * 2; s++) {
        struct rows_case x = rows_case(widths[s / 2]);
        x.write = s % 2 ? HK_ADD : HK_STORE;
        for (int p = 0; p < pairs; p += 5) x.slot[p] = -1;
        for (int p = 0; p < topk; p++) x.slot[p] = -1; // A token that lost all its choices.
        const int64_t size = tokens * x.width, count = (size + 1) / 2;
        real *out = s % 2 ? (real *)values(2 * count, 3) : test_nans(count);
        const hk_bf16 *old = (const hk_bf16 *)test_copy(out, count), *y = (const hk_bf16 *)out;
        run_with_threads(run_combine, &x, out, count);
        for (int64_t i = 0; i < size; i++) {
            float sum = 0;
            for (int64_t j = 0; j < topk; j++) {
                const int64_t r = x.slot[i / x.width * topk + j];
                if (r >= 0) sum += hk_bf16_float(x.from[r * x.width + i % x.width]);
            }
            const float want = (s % 2 ? hk_bf16_float(old[i]) : 0) + sum;
            assert_int_equal(y[i].bits, hk_bf16_round(want).bits);
        }
        test_free_all();
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(permute_copies_tokens),
                                       cmocka_unit_test(combine_rounds_the_sum_once)};
    return RUN_KERNEL_TESTS(tests);
}
