// rope: the table, the rotation, and that the gradient is the rotation back.
#include "kernels/rope/rope.h"

#include "tests/kernels/kernel_case.h"

static const struct hk_rope_dims shapes[] = {
    {.batch = 1, .positions = 1, .heads = 1, .width = 2},
    {.batch = 2, .positions = 9, .heads = 3, .width = 6},
    {.batch = 1, .positions = 33, .heads = 2, .width = 70},
    {.batch = 2, .positions = 0, .heads = 2, .width = 8},
    {.batch = 2, .positions = 9, .heads = 3, .width = 6, .interleaved = true},
    {.batch = 1, .positions = 17, .heads = 2, .width = 72, .interleaved = true},
};

static int64_t size(const struct hk_rope_dims *d) {
    return d->batch * d->positions * d->heads * d->width;
}

static void the_table_is_rounded_once(void **state) {
    (void)state;
    const int64_t positions = 5000, width = 10, part = 1234;
    const struct hk_rope_rule rule = {.theta = 10000};
    real *table = test_nans(positions * width);
    HK_NAME(rope_table)(table, 0, part, width, rule);
    HK_NAME(rope_table)(table + part * width, part, positions - part, width, rule);
    for (int64_t p = 0; p < positions; p += 37) {
        for (int64_t j = 0; j < width / 2; j++) {
            const wide angle = (wide)p * powl(10000, -2.0L * j / width);
            // The angle, in double, is off by at most 4 units of its last place.
            const double bound = EPSILON / 2 + 4 * DBL_EPSILON * (double)p + DBL_EPSILON;
            assert_near("cos", p, table[p * width + j], cosl(angle), bound);
            assert_near("sin", p, table[p * width + width / 2 + j], sinl(angle), bound);
        }
    }
    test_free_all();
}

// Linear scaling, and a ramp from 2 to 5: element 1 as without, 3 a third of the way, 6 divided. By turns: element j
// turns 16 * 10^-j times in 16 * 2 pi positions; a ramp from 0.016 to 1.6, and a step at 1.
static void frequencies_are_scaled(void **state) {
    (void)state;
    static const struct {
        struct hk_rope_rule rule;
        double divided[8]; // By what the frequency of each element is divided.
    } cases[] = {
        {{1e4, 4, -1, 0, 1, 0}, {4, 4, 4, 4, 4, 4, 4, 4}},
        {{5e5, 8, 2, 5, 1.2, 0},
         {1, 1, 1, 1 / (2 / 3. + 1 / 24.), 1 / (1 / 3. + 2 / 24.), 8, 8, 8}},
        {{1e8, 8, 0.016, 1.6, 1, 16 * 2 * M_PI}, {1, 1, 1 / (1 / 11. + 10 / 88.), 8, 8, 8, 8, 8}},
        {{1e8, 16, 1, 1, 1, 16 * 2 * M_PI}, {1, 1, 16, 16, 16, 16, 16, 16}},
    };
    for (int k = 0; k < 4; k++) {
        const struct hk_rope_rule rule = cases[k].rule;
        real *table = test_nans(9 * 16);
        HK_NAME(rope_table)(table, 0, 9, 16, rule);
        for (int64_t i = 0; i < 9 * 8; i++) {
            const int64_t p = i / 8, j = i % 8;
            const wide angle = (wide)p * powl(rule.theta, -2.0L * j / 16) / cases[k].divided[j];
            const double bound = 2 * EPSILON * rule.amplitude + 64 * DBL_EPSILON;
            assert_near("cos", i, table[p * 16 + j], rule.amplitude * cosl(angle), bound);
            assert_near("sin", i, table[p * 16 + 8 + j], rule.amplitude * sinl(angle), bound);
        }
    }
    test_free_all();
}

struct rope_case {
    struct hk_rope_dims dims;
    enum hk_write write;
    const real *x, *table;
};

static void run(const void *context, real *out) {
    const struct rope_case *x = context;
    HK(rope, out, x->x, x->table, x->dims);
}

static void run_gradient(const void *context, real *out) {
    const struct rope_case *x = context;
    HK(rope_grad, out, x->x, x->table, x->dims, x->write);
}

// `back` is 1 forward, -1 for the gradient. Each result is a sum of two products.
static void check(const struct rope_case *x, const real *got, const real *old, int back) {
    const int64_t width = x->dims.width, half = width / 2;
    for (int64_t i = 0; i < size(&x->dims); i++) {
        const int64_t row = i / width, j = i % width, p = row / x->dims.heads % x->dims.positions;
        const bool neighbours = x->dims.interleaved, first = neighbours ? j % 2 == 0 : j < half;
        const int64_t pair = neighbours ? j / 2 : j % half, apart = neighbours ? 1 : half;
        const real *from = x->x + row * width, *table = x->table + p * width;
        const wide c = table[pair], s = back * (wide)table[half + pair];
        wide want = first ? from[j] * c - from[j + apart] * s : from[j] * c + from[j - apart] * s;
        if (old) want += old[i];
        assert_value_near("rope", i, got[i], want, 4 * EPSILON * 3);
    }
}

static void rotations_are_within_the_bound(void **state) {
    (void)state;
    for (int64_t s = 0; s < COUNT(shapes); s++) {
        struct rope_case x = {.dims = shapes[s]};
        const int64_t count = size(&x.dims);
        real *table = test_nans(x.dims.positions * x.dims.width);
        HK_NAME(rope_table)
        (table, 0, x.dims.positions, x.dims.width, (struct hk_rope_rule){.theta = 10000});
        x.table = table;
        x.x = test_reals(count, 1);

        real *y = test_nans(count), *dx = test_nans(count), *sum = test_reals(count, 2);
        const real *old = test_copy(sum, count);
        run_with_threads(run, &x, y, count);
        check(&x, y, NULL, 1);
        run_with_threads(run_gradient, &x, dx, count);
        check(&x, dx, NULL, -1);
        x.write = HK_ADD;
        run_with_threads(run_gradient, &x, sum, count);
        check(&x, sum, old, -1);

        real *in_place = test_copy(x.x, count);
        HK(rope, in_place, in_place, table, x.dims);
        assert_same_bits("in place", in_place, y, count);
        test_free_all();
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table_is_rounded_once),
        cmocka_unit_test(frequencies_are_scaled),
        cmocka_unit_test(rotations_are_within_the_bound),
    };
    return RUN_KERNEL_TESTS(tests);
}
