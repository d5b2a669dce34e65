// gather copies; its gradient adds rows in ascending order, which is exact to the bit. ahead moves sequences.
#include "kernels/gather/gather.h"

#include "tests/kernels/kernel_case.h"

static const int64_t shapes[][3] = {
    {1, 1, 1}, {0, 4, 8}, {50, 7, 65}, {300, 20, 200}, {40, 5, 1100}}; // count, rows, width

struct gather_case {
    int64_t count, rows, width;
    enum hk_write write;
    const real *x;
    const int32_t *ids;
};

// Every fifth is no token.
static const int32_t *ids_of(const struct gather_case *x) {
    int32_t *ids = test_ints(x->count, (int32_t)x->rows, 2);
    for (int64_t i = 3; i < x->count; i += 5) ids[i] = -1;
    return ids;
}

static void run(const void *context, real *out) {
    const struct gather_case *x = context;
    HK(gather, out, x->x, x->ids, x->count, x->width);
}

static void run_gradient(const void *context, real *out) {
    const struct gather_case *x = context;
    HK(gather_grad, out, x->x, x->ids, x->count, x->rows, x->width, x->write);
}

static void rows_are_copied(void **state) {
    (void)state;
    for (int64_t s = 0; s < COUNT(shapes); s++) {
        struct gather_case x = {.count = shapes[s][0], .rows = shapes[s][1], .width = shapes[s][2]};
        x.x = test_reals(x.rows * x.width, 1);
        x.ids = ids_of(&x);
        real *y = test_nans(x.count * x.width), *zeros = test_nans(x.width);
        for (int64_t j = 0; j < x.width; j++) zeros[j] = 0;
        run_with_threads(run, &x, y, x.count * x.width);
        for (int64_t i = 0; i < x.count; i++) {
            const real *want = x.ids[i] < 0 ? zeros : x.x + x.ids[i] * x.width;
            assert_same_bits("y", y + i * x.width, want, x.width);
        }
        test_free_all();
    }
}

static void gradients_add_in_order(void **state) {
    (void)state;
    for (int64_t s = 0; s < COUNT(shapes) * 2; s++) {
        const int64_t *shape = shapes[s / 2];
        struct gather_case x = {.count = shape[0], .rows = shape[1], .width = shape[2]};
        x.write = s % 2 ? HK_ADD : HK_STORE;
        x.x = test_reals(x.count * x.width, 1);
        x.ids = ids_of(&x);
        const int64_t size = x.rows * x.width;
        real *got = s % 2 ? test_reals(size, 3) : test_nans(size), *want = test_copy(got, size);
        for (int64_t i = 0; i < size && x.write == HK_STORE; i++) want[i] = 0;
        for (int64_t i = 0; i < x.count * x.width; i++) {
            const int32_t id = x.ids[i / x.width];
            if (id >= 0) want[id * x.width + i % x.width] += x.x[i];
        }
        run_with_threads(run_gradient, &x, got, size);
        assert_same_bits("dtable", got, want, size);
        test_free_all();
    }
}

static void tokens_are_moved_within_sequences(void **state) {
    (void)state;
    enum { sequences = 3, positions = 101, all = sequences * positions };
    for (int64_t by = 0; by <= positions + 1; by = 4 * by + 1) {
        const int32_t *targets = test_ints(all, 50, 1);
        int32_t *ids = test_ints(all, 50, 2);
        HK_INTS(ahead, ids, targets, sequences, positions, by);
        for (int64_t i = 0; i < all; i++) {
            const bool there = i % positions + by < positions;
            assert_int_equal(ids[i], there ? targets[i + by] : -1);
        }
        test_free_all();
    }
    HK_INTS(ahead, NULL, NULL, 0, positions, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_copied),
        cmocka_unit_test(gradients_add_in_order),
        cmocka_unit_test(tokens_are_moved_within_sequences),
    };
    return RUN_KERNEL_TESTS(tests);
}
