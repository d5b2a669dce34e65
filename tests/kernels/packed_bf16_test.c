// Packed weights: elements against their formats' definition, GEMMs against those of the same elements as bf16 panels.
#include "kernels/packed/packed.h"

#include <math.h>

#include "kernels/grouped/grouped.h"
#include "kernels/matmul/matmul.h"
#include "tests/kernels/kernel_case.h"

enum { experts = 4, offset = 64, rows = 200, BLOCK_MAX = 4096, seeds = 10, nan_seed = seeds + 1 };

static const int32_t first[experts + 1] = {0, 0, 3, 180, 200};

// ---- elements

// The number of a code by its format's definition; `bias` and `fraction` bits of the exponent and the fraction.
static double defined(int code, int exponent_bits, int fraction_bits, int bias) {
    const int fraction = code & ((1 << fraction_bits) - 1);
    const int exponent = code >> fraction_bits & ((1 << exponent_bits) - 1);
    const double part = (double)fraction / (1 << fraction_bits);
    const double magnitude = exponent ? ldexp(1 + part, exponent - bias) : ldexp(part, 1 - bias);
    return code >> (exponent_bits + fraction_bits) & 1 ? -magnitude : magnitude;
}

static void assert_element(const void *block, enum hk_packing packing, int64_t row, int64_t column,
                           double wanted) {
    const hk_bf16 got = hk_packed_element(packing, block, row, column);
    const hk_bf16 want = hk_bf16_round((float)wanted);
    if (isnan(wanted))
        assert_true(isnan(hk_bf16_float(got)));
    else
        assert_int_equal(got.bits, want.bits);
}

static void elements_are_as_defined(void **state) {
    (void)state;
    uint8_t block[BLOCK_MAX] = {0};
    for (int scale = 0; scale < 256; scale++) {
        block[5] = (uint8_t)scale;
        for (int code = 0; code < 16; code++) {
            block[HK_PACKED_HEAD + 3 * HK_PANEL + 5] = (uint8_t)(code << 4 | (15 - code));
            const double factor = scale == 255 ? NAN : ldexp(1, scale - 127);
            assert_element(block, HK_MXFP4, 7, 5, defined(code, 2, 1, 1) * factor);
            assert_element(block, HK_MXFP4, 6, 5, defined(15 - code, 2, 1, 1) * factor);
        }
    }
    const float scales[] = {1, 0.0123F, -3.7e-5F, 1e30F, 1e-37F};
    for (int s = 0; s < 5; s++) {
        memcpy(block, &scales[s], sizeof scales[s]);
        for (int code = 0; code < 256; code++) {
            block[HK_PACKED_HEAD + 2 * (3 * HK_PANEL + 5) + 1] = (uint8_t)code;
            const double value = (code & 127) == 127 ? NAN : defined(code, 4, 3, 7);
            assert_element(block, HK_FP8, 7, 5, value * scales[s]);
        }
    }
}

// MXFP4 within the range of bf16 is exact: no rounding is needed.
static void elements_of_mxfp4_are_exact(void **state) {
    (void)state;
    uint8_t block[BLOCK_MAX] = {0};
    for (int scale = 2; scale < 253; scale++) {
        for (int code = 0; code < 16; code++) {
            block[0] = (uint8_t)scale, block[HK_PACKED_HEAD] = (uint8_t)code;
            const double wanted = ldexp(defined(code, 2, 1, 1), scale - 127);
            assert_true((double)hk_bf16_float(hk_packed_element(HK_MXFP4, block, 0, 0)) == wanted);
        }
    }
}

// ---- packing

enum { CODES = HK_PACKED_ROWS * HK_PANEL };

// Random codes and scales; of fp8 without NaN, in some rounds within a part of its range.
static void draw_block(enum hk_packing packing, int round, uint8_t *block, float *scale) {
    static uint32_t seed = 1;
    const int64_t bytes = hk_packed_block_bytes(packing);
    for (int64_t i = 0; i < bytes; i++) {
        seed = seed * 1664525 + 1013904223;
        block[i] = (uint8_t)(seed >> 24);
        if (packing == HK_FP8 && round % 3 == 1) block[i] &= 0xbf;
        if (packing == HK_FP8 && (block[i] & 127) == 127) block[i] = 0;
    }
    if (round % 4 == 1) memset(block + HK_PACKED_HEAD, 0x11, (size_t)bytes - HK_PACKED_HEAD);
    for (int i = 0; i < HK_PANEL; i++) block[i] = (uint8_t)(2 + block[i] % 251);
    *scale = ldexpf(1 + (float)(seed >> 9) * 0x1p-23F, round % 60 - 30);
    if (packing == HK_FP8) memcpy(block, scale, sizeof *scale);
}

static void assert_same_elements(enum hk_packing packing, const uint8_t *block,
                                 const uint8_t *again) {
    for (int64_t i = 0; i < CODES; i++) {
        const int64_t row = i / HK_PANEL, column = i % HK_PANEL;
        assert_int_equal(hk_packed_element(packing, again, row, column).bits,
                         hk_packed_element(packing, block, row, column).bits);
    }
}

// Packed weights that are read, as files of parameters have them, and packed again are the same.
static void packing_keeps_what_was_packed(void **state) {
    (void)state;
    for (int round = 0; round < 400; round++) {
        const enum hk_packing packing = round % 2 ? HK_FP8 : HK_MXFP4;
        uint8_t block[BLOCK_MAX], again[BLOCK_MAX];
        float values[CODES], scale;
        draw_block(packing, round / 2, block, &scale);
        for (int64_t i = 0; i < CODES; i++)
            values[i] =
                hk_bf16_float(hk_packed_element(packing, block, i / HK_PANEL, i % HK_PANEL));
        hk_pack(packing, again, values, HK_PANEL, HK_PACKED_ROWS, HK_PANEL, 0);
        assert_same_elements(packing, block, again);
    }
}

// So is the float that a loader makes of an element and its scale.
static void packing_keeps_what_was_made_with_a_scale(void **state) {
    (void)state;
    for (int round = 0; round < 200; round++) {
        uint8_t block[BLOCK_MAX], again[BLOCK_MAX];
        float values[CODES], scale;
        draw_block(HK_FP8, round, block, &scale);
        if (round % 5 == 0) scale = -scale;
        memcpy(block, &scale, sizeof scale);
        for (int64_t i = 0; i < CODES; i++) {
            const int64_t row = i / HK_PANEL, column = i % HK_PANEL;
            const int code = block[HK_PACKED_HEAD + 2 * (row / 2 * HK_PANEL + column) + row % 2];
            values[i] = (float)(defined(code, 4, 3, 7) * scale);
        }
        hk_pack(HK_FP8, again, values, HK_PANEL, HK_PACKED_ROWS, HK_PANEL, scale);
        assert_memory_equal(block + HK_PACKED_HEAD, again + HK_PACKED_HEAD, CODES);
    }
}

// Values with more bits go to the nearest element: the error is at most half a step.
static void packing_goes_to_the_nearest(void **state) {
    (void)state;
    float *values = test_reals(HK_PACKED_ROWS * HK_PANEL, 7);
    uint8_t block[BLOCK_MAX];
    for (int packing = HK_MXFP4; packing <= HK_FP8; packing++) {
        hk_pack((enum hk_packing)packing, block, values, HK_PANEL, HK_PACKED_ROWS, HK_PANEL, 0);
        for (int64_t j = 0; j < HK_PANEL; j++) {
            float scale, most = 0;
            for (int64_t i = 0; i < HK_PACKED_ROWS; i++)
                most = fmaxf(most, fabsf(values[i * HK_PANEL + j]));
            memcpy(&scale, block, sizeof scale); // That of fp8.
            for (int64_t i = 0; i < HK_PACKED_ROWS; i++) {
                const float value = values[i * HK_PANEL + j];
                const float got =
                    hk_bf16_float(hk_packed_element((enum hk_packing)packing, block, i, j));
                // MXFP4 has steps of half a power of two, fp8 of an eighth of a value; bf16 adds a 256th. Beyond 6
                // times its scale MXFP4 has nothing: at most 2 of 8 are lost.
                const float own = ldexpf(1, ilogbf(fabsf(value)));
                const float least =
                    packing == HK_FP8 ? scale * 0x1p-9F : ldexpf(1, ilogbf(most) - 3);
                const float step = packing == HK_FP8 ? fabsf(value) / 8 : own / 2;
                float bound = fmaxf(step, least) / 2 + fabsf(value) / 256;
                if (packing == HK_MXFP4 && fabsf(value) > 6 * ldexpf(1, ilogbf(most) - 2))
                    bound = fabsf(value) / 4 + fabsf(value) / 256;
                assert_true(fabsf(got - value) <= bound);
            }
        }
    }
    test_free_all();
}

static void what_is_not_finite_is_nan(void **state) {
    (void)state;
    float values[HK_PACKED_ROWS * HK_PANEL] = {[3 * HK_PANEL + 2] = INFINITY, [9] = NAN};
    uint8_t block[BLOCK_MAX];
    for (int packing = HK_MXFP4; packing <= HK_FP8; packing++) {
        hk_pack((enum hk_packing)packing, block, values, HK_PANEL, HK_PACKED_ROWS, HK_PANEL, 0);
        assert_element(block, (enum hk_packing)packing, 3, 2, NAN);
        assert_element(block, (enum hk_packing)packing, 0, 9, NAN);
        assert_element(block, (enum hk_packing)packing, 0, 10, 0);
    }
}

// ---- GEMMs

struct packed_case {
    struct hk_grouped_dims dims;
    struct hk_matmul_dims plain;
    enum hk_write write;
    const real *a, *c;
    const hk_bf16 *chunk[experts];
};

static void run_nn(const void *context, real *out) {
    const struct packed_case *x = context;
    hk_grouped_nn_bf16(out, x->a, x->chunk, offset, first, x->dims, x->write, NULL);
}

static void run_nt(const void *context, real *out) {
    const struct packed_case *x = context;
    hk_grouped_nt_bf16(out, x->c, x->chunk, offset, first, x->dims, x->write, NULL);
}

static void run_matmul_nn(const void *context, real *out) {
    const struct packed_case *x = context;
    hk_matmul_nn_bf16(out, x->a, x->chunk[0] + offset, HK_PANELS, x->plain, x->write, NULL);
}

static void run_matmul_nt(const void *context, real *out) {
    const struct packed_case *x = context;
    hk_matmul_nt_bf16(out, x->c, x->chunk[0] + offset, HK_PANELS, x->plain, x->write, NULL);
}

// Random values, with some of the smallest and largest scales.
static hk_bf16 *packed_of(enum hk_packing packing, int64_t k, int64_t n, uint64_t seed) {
    const int64_t size = hk_packed_size(packing, k, n);
    hk_bf16 *chunk = (hk_bf16 *)test_nans(offset + size);
    const real *values = test_reals(k * n, seed);
    for (int64_t row = 0; row < k; row += HK_PACKED_ROWS) {
        for (int64_t column = 0; column < n; column += HK_PANEL) {
            const int64_t left = k - row, wide = n - column;
            uint8_t *block = hk_packed_block(packing, chunk + offset, k, row, column);
            hk_pack(packing, block, values + row * n + column, n,
                    left < HK_PACKED_ROWS ? left : HK_PACKED_ROWS,
                    wide < HK_PANEL ? wide : HK_PANEL, 0);
            if (packing != HK_MXFP4) continue;
            block[0] = row % 64 ? 1 : 240;
            block[1] = 0;                         // The least, of all of a column.
            if (seed == nan_seed) block[2] = 255; // All sums with it are NaN.
        }
    }
    return chunk;
}

// The same elements as bf16 panels.
static hk_bf16 *unpacked_of(enum hk_packing packing, hk_bf16 *packed, int64_t k, int64_t n) {
    hk_bf16 *chunk = (hk_bf16 *)test_nans(offset + hk_panels_size_bf16(k, n));
    real *values = test_nans(k * n), *panels = test_nans(hk_panels_size(k, n));
    for (int64_t i = 0; i < k * n; i++)
        values[i] = hk_bf16_float(
            hk_packed_element(packing, hk_packed_block(packing, packed + offset, k, i / n, i % n),
                              i / n % HK_PACKED_ROWS, i % n % HK_PANEL));
    hk_panels_pack_f32(panels, values, k, n);
    hk_round_panels_bf16(chunk + offset, panels, k, n);
    return chunk;
}

static void check(enum hk_packing packing, int64_t k, int64_t n, enum hk_write write) {
    struct packed_case x = {
        .dims = {.experts = experts, .n = n, .k = k, .packing = packing},
        .plain = {.m = rows, .n = n, .k = k, .packing = packing},
        .write = write,
        .a = test_reals(rows * k, 1),
        .c = test_reals(rows * n, 2),
    };
    struct packed_case plain = x;
    plain.dims.packing = plain.plain.packing = HK_UNPACKED;
    for (int e = 0; e < experts; e++) {
        hk_bf16 *packed = packed_of(packing, k, n, (uint64_t)(seeds + e));
        x.chunk[e] = packed;
        plain.chunk[e] = unpacked_of(packing, packed, k, n);
    }
    const struct {
        void (*run)(const void *, real *);
        int64_t size;
        const char *name;
    } gemm[] = {{run_nn, rows * n, "nn"},
                {run_nt, rows * k, "nt"},
                {run_matmul_nn, rows * n, "matmul nn"},
                {run_matmul_nt, rows * k, "matmul nt"}};
    for (int i = 0; i < 4; i++) {
        real *got = test_reals(gemm[i].size, 3), *want = test_copy(got, gemm[i].size);
        gemm[i].run(&plain, want);
        run_with_threads(gemm[i].run, &x, got, gemm[i].size);
        assert_same_bits(gemm[i].name, got, want, gemm[i].size);
    }
    test_free_all();
}

static void products_are_those_of_unpacked_weights(void **state) {
    (void)state;
    for (int packing = HK_MXFP4; packing <= HK_FP8; packing++) {
        check((enum hk_packing)packing, 64, 64, HK_STORE);
        check((enum hk_packing)packing, 101, 70, HK_STORE);
        check((enum hk_packing)packing, 33, 129, HK_ADD);
        check((enum hk_packing)packing, 544, 608, HK_ADD);
        check((enum hk_packing)packing, 1100, 70, HK_STORE);
        check((enum hk_packing)packing, 70, 1101, HK_STORE);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(elements_are_as_defined),
        cmocka_unit_test(elements_of_mxfp4_are_exact),
        cmocka_unit_test(packing_keeps_what_was_packed),
        cmocka_unit_test(packing_keeps_what_was_made_with_a_scale),
        cmocka_unit_test(packing_goes_to_the_nearest),
        cmocka_unit_test(what_is_not_finite_is_nan),
        cmocka_unit_test(products_are_those_of_unpacked_weights),
    };
    return RUN_KERNEL_TESTS(tests);
}
