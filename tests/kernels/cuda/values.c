// Values of one call, see values.h.
#include "tests/kernels/cuda/values.h"

#include "tests/kernels/kernel_case.h"

enum { values_max = 8 };

static struct {
    const real *from;
    real *to; // NULL: they are read only.
    hk_bf16 *values;
    int64_t count;
} calls[values_max];
static int call_count;

// Floats that bf16 cannot hold are a mistake of the test: its reference would see others than the kernel.
static hk_bf16 *values_of(const real *from, real *to, int64_t count) {
    for (int i = 0; i < call_count; i++) {
        if (calls[i].from != from || calls[i].count != count) continue;
        if (to) calls[i].to = to; // Written in place.
        return calls[i].values;
    }
    assert_true(call_count < values_max);
    hk_bf16 *values = test_array(count, sizeof *values);
    for (int64_t i = 0; i < count; i++) {
        values[i] = hk_bf16_round(from[i]);
        assert_true(hk_bf16_float(values[i]) == from[i] || isnan(from[i]));
    }
    calls[call_count].from = from;
    calls[call_count].to = to;
    calls[call_count].values = values;
    calls[call_count++].count = count;
    return values;
}

hk_bf16 *test_stored(real *values, int64_t count) {
    return values_of(values, values, count);
}

const hk_bf16 *test_read(const real *values, int64_t count) {
    return values_of(values, NULL, count);
}

void test_join_values(const char *kernel) {
    test_join(kernel);
    for (int i = 0; i < call_count; i++) {
        for (int64_t j = 0; j < calls[i].count && calls[i].to; j++)
            calls[i].to[j] = hk_bf16_float(calls[i].values[j]);
    }
    call_count = 0;
}
