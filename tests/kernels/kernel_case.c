// The tests' support, see kernel_case.h.
#include "tests/kernels/kernel_case.h"

#include <inttypes.h>

#include "tests/kernels/target.h"

enum { arrays_max = 4096, guard_bytes = 64, guard_byte = 0x5c };

static struct {
    unsigned char *memory;
    size_t bytes; // Without the guard.
} arrays[arrays_max];
static int array_count;

void *test_array(int64_t count, size_t size) {
    const size_t bytes = (size_t)count * size;
    unsigned char *memory = target_allocate(bytes + guard_bytes);
    assert_non_null(memory);
    assert_true(array_count < arrays_max);
    memset(memory + bytes, guard_byte, guard_bytes);
    arrays[array_count].memory = memory;
    arrays[array_count++].bytes = bytes;
    return memory;
}

void test_free_all(void) {
    while (array_count > 0) {
        array_count--;
        for (int i = 0; i < guard_bytes; i++) {
            assert_int_equal(arrays[array_count].memory[arrays[array_count].bytes + i], guard_byte);
        }
        target_free(arrays[array_count].memory);
    }
}

// splitmix64.
static uint64_t draw(uint64_t *state) {
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

real test_value(real x) {
#ifdef HK_VALUES_BF16
    return hk_bf16_float(hk_bf16_round(x));
#else
    return x;
#endif
}

real *test_reals(int64_t count, uint64_t seed) {
    real *array = test_array(count, sizeof *array);
    // 24 bits: exact in float, so that both builds see the same inputs.
    for (int64_t i = 0; i < count; i++)
        array[i] = test_value((real)(draw(&seed) >> 40) * 0x1p-23f - 1);
    return array;
}

real *test_nans(int64_t count) {
    real *array = test_array(count, sizeof *array);
    for (int64_t i = 0; i < count; i++) array[i] = NAN;
    return array;
}

real *test_copy(const real *from, int64_t count) {
    real *array = test_array(count, sizeof *array);
    memcpy(array, from, (size_t)count * sizeof *array);
    return array;
}

double *test_doubles(int64_t count) {
    double *array = test_array(count, sizeof *array);
    for (int64_t i = 0; i < count; i++) array[i] = NAN;
    return array;
}

double *test_widened(const real *from, int64_t count) {
    double *array = test_array(count, sizeof *array);
    for (int64_t i = 0; i < count; i++) array[i] = (double)from[i];
    return array;
}

int32_t *test_ints(int64_t count, int32_t below, uint64_t seed) {
    int32_t *array = test_array(count, sizeof *array);
    for (int64_t i = 0; i < count; i++) array[i] = (int32_t)(draw(&seed) % (uint64_t)below);
    return array;
}

void **test_pointers(int64_t count) {
    return test_array(count, sizeof(void *));
}

void assert_near(const char *what, int64_t index, real got, wide want, double bound) {
    if (!(fabsl((wide)got - want) <= (wide)bound)) { // Written so that a NaN fails.
        fail_msg("%s[%" PRId64 "] = %.17g, want %.17Lg +- %.3g", what, index, (double)got, want,
                 bound);
    }
}

void assert_value_near(const char *what, int64_t index, real got, wide want, double bound) {
    assert_near(what, index, got, want, bound + VALUE_EPSILON * (fabs((double)want) + bound));
}

void assert_same_bits(const char *what, const real *a, const real *b, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        if (memcmp(&a[i], &b[i], sizeof *a) != 0) {
            fail_msg("%s[%" PRId64 "]: %.17g and %.17g differ", what, i, (double)a[i],
                     (double)b[i]);
        }
    }
}

void run_with_threads(void (*run)(const void *context, real *out), const void *context, real *out,
                      int64_t count) {
    real *before = test_copy(out, count);
    target_vary(0);
    run(context, out);
    for (int way = 1; way <= 2; way++) {
        real *again = test_copy(before, count);
        target_vary(way);
        run(context, again);
        assert_same_bits("threads", out, again, count);
    }
}

void check_value_gradient(const char *what, const real *got, const real *written, double *x,
                          int64_t count, double (*loss)(const void *context), const void *context,
                          double rounding) {
    const double h = 0x1p-17;
    const double tolerance = 1e-7 * (fabs(loss(context)) + 1) + rounding;
    for (int64_t i = 0; i < count; i++) {
        const double at = x[i];
        x[i] = at + h;
        const double above = loss(context);
        x[i] = at - h;
        const double below = loss(context);
        x[i] = at;
        const double stored = written ? VALUE_EPSILON * fabs((double)written[i]) : 0;
        assert_near(what, i, got[i], (wide)((above - below) / (2 * h)), tolerance + stored);
    }
}

void check_gradient(const char *what, const real *got, double *x, int64_t count,
                    double (*loss)(const void *context), const void *context, double rounding) {
    check_value_gradient(what, got, NULL, x, count, loss, context, rounding);
}

int run_kernel_tests(const struct CMUnitTest *tests, size_t count) {
    if (!target_is_here()) return 77;
    return _cmocka_run_group_tests("kernels", tests, count, NULL, NULL);
}
