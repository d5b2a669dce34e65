// Gated GEMMs: both results have the bits of grouped_nn, and the gating is that of its formula, in double.
//
// Bound of r: silu is within 4 units of the last place (kernels/scalar.h), two products round once each, and r once more
// where it is kept as bf16.
#include "kernels/bf16.h"
#include "kernels/launchers.h"
#include "tests/kernels/kernel_case.h"

enum { experts = 6, picks = 3, offset = 8, padding = 16 };

static const int32_t ragged[experts + 1] = {0, 0, 1, 4, 21, 150, 330};

struct swiglu_case {
    struct hk_grouped_dims dims;
    bool bf16, gathers;
    const int32_t *first, *pair;
    const real *scale;
    const void *a; // [tokens, k] if gathered, else [rows, k].
    const void **b, **c;
    int64_t count; // In each result.
};

static void *values(int64_t count, uint64_t seed, bool bf16) {
    real *from = test_reals(count, seed);
    if (!bf16) return from;
    hk_bf16 *to = (hk_bf16 *)test_nans((count + 1) / 2);
    for (int64_t i = 0; i < count; i++) to[i] = hk_bf16_round(from[i]);
    return to;
}

static int64_t size_of(const struct swiglu_case *x) {
    return x->bf16 ? 2 : 4;
}

// Where result 0, 1 or 2 lies in `out`: at multiples of 16 bytes, as in programs.
static void *part(const struct swiglu_case *x, real *out, int which) {
    const int64_t bytes = (x->count * size_of(x) + padding - 1) / padding * padding;
    return (char *)out + which * bytes;
}

static int64_t reals_of(const struct swiglu_case *x) {
    return ((char *)part(x, NULL, 3) - (char *)part(x, NULL, 0)) / 4;
}

#define CALL(type, T)                                                                              \
    (x->gathers                                                                                    \
         ? hkc_gathered_swiglu_##type(test_lane(), (T *)ab, (T *)ac, (T *)r, x->a, x->pair, picks, \
                                      (const T *const *)x->b, offset, (const T *const *)x->c, 0,   \
                                      x->first, x->scale, x->dims)                                 \
         : hkc_swiglu_##type(test_lane(), (T *)ab, (T *)ac, (T *)r, x->a, (const T *const *)x->b,  \
                             offset, (const T *const *)x->c, 0, x->first, x->scale, x->dims),      \
     test_join("swiglu"))

static void run(const void *context, real *out) {
    const struct swiglu_case *x = context;
    void *ab = part(x, out, 0), *ac = part(x, out, 1), *r = part(x, out, 2);
    if (x->bf16) {
        CALL(bf16, hk_bf16);
    } else {
        CALL(f32, float);
    }
}

// The product that `out` should have, by the kernel that computes nothing else.
#define PLAIN(type, T)                                                                             \
    (x->gathers                                                                                    \
         ? hkc_gathered_nn_##type(test_lane(), (T *)out, x->a, x->pair, picks,                     \
                                  (const T *const *)chunk, from, x->first, x->dims, HK_STORE)      \
         : hkc_grouped_nn_##type(test_lane(), (T *)out, x->a, (const T *const *)chunk, from,       \
                                 x->first, x->dims, HK_STORE, NULL),                               \
     test_join("nn"))

static void product(const struct swiglu_case *x, void *out, const void **chunk, int64_t from) {
    if (x->bf16) {
        PLAIN(bf16, hk_bf16);
    } else {
        PLAIN(f32, float);
    }
}

static double value_at(const struct swiglu_case *x, const void *values, int64_t i) {
    return x->bf16 ? hk_bf16_float(((const hk_bf16 *)values)[i]) : ((const float *)values)[i];
}

static void check_gated(const struct swiglu_case *x, const void *ab, const void *ac,
                        const void *r) {
    for (int64_t i = 0; i < x->count; i++) {
        const double b = value_at(x, ab, i), c = value_at(x, ac, i);
        const double want = b / (1 + exp(-b)) * c * x->scale[i / x->dims.n];
        assert_near("r", i, (real)value_at(x, r, i), want,
                    fabs(want) * (8 * EPSILON + (x->bf16 ? 0x1p-8 : 0)));
    }
}

static void check(int64_t k, int64_t n, bool bf16, bool gathers) {
    const int64_t rows = ragged[experts];
    struct swiglu_case x = {
        .dims = {.experts = experts, .n = n, .k = k},
        .bf16 = bf16,
        .gathers = gathers,
        .pair = test_ints(rows, (int32_t)rows, 3),
        .scale = test_reals(rows, 5),
        .a = values((gathers ? rows / picks : rows) * k, 1, bf16),
        .b = (const void **)test_pointers(experts),
        .c = (const void **)test_pointers(experts),
        .count = rows * n,
    };
    int32_t *first = test_ints(experts + 1, 1, 0);
    memcpy(first, ragged, sizeof ragged);
    x.first = first;
    for (int e = 0; e < experts; e++) {
        x.b[e] = values(offset + k * n, (uint64_t)(10 + e), bf16);
        x.c[e] = values(k * n, (uint64_t)(20 + e), bf16);
    }
    real *out = test_reals(reals_of(&x), 4), *want = test_copy(out, reals_of(&x));
    product(&x, part(&x, want, 0), x.b, offset);
    product(&x, part(&x, want, 1), x.c, 0);
    run_with_threads(run, &x, out, reals_of(&x));
    const int64_t both = ((char *)part(&x, out, 2) - (char *)out) / 4;
    assert_same_bits("ab, ac", out, want, both);
    check_gated(&x, part(&x, out, 0), part(&x, out, 1), part(&x, out, 2));
    // Between the parts nothing is written.
    const int64_t used = x.count * size_of(&x), room = (char *)part(&x, out, 1) - (char *)out;
    assert_memory_equal((char *)part(&x, out, 2) + used, (char *)part(&x, want, 2) + used,
                        (size_t)(room - used));
    test_free_all();
}

static void check_all(bool bf16) {
    check(35, 70, bf16, false);
    check(40, 72, bf16, true);
    check(17, 9, bf16, true);
    check(24, 136, bf16, false);
}

static void gated_products_are_products(void **state) {
    (void)state;
    check_all(false);
}

static void so_they_are_of_bf16(void **state) {
    (void)state;
    check_all(true);
    check(328, 152, true, true); // More than one tile and all of its stages hold.
    check(264, 131, true, false);
}

// With instructions that every device has, on any device.
static void and_with_common_instructions(void **state) {
    (void)state;
    test_lane()->warpgroups = false;
    check_all(true);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gated_products_are_products),
        cmocka_unit_test(so_they_are_of_bf16),
        cmocka_unit_test(and_with_common_instructions),
    };
    return RUN_KERNEL_TESTS(tests);
}
