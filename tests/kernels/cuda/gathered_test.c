// Products that gather rows as they load them, against the same products of rows that permute has gathered: the
// same bits. Those of grouped.h are checked by grouped_test.c and products_bf16_test.c.
#include "kernels/bf16.h"
#include "kernels/launchers.h"
#include "tests/kernels/kernel_case.h"

enum { experts = 6, picks = 3, offset = 8 };

// Rows by expert, of a third as many tokens: none, few, one more than a tile, and more than are summed at once.
static const int32_t ragged[experts + 1] = {0, 0, 1, 4, 21, 150, 330};
static const int32_t crowded[experts + 1] = {0, 0, 4200, 4203, 4203, 4203, 4221};
static const int32_t few[experts + 1] = {0, 0, 1, 4, 21, 151, 156};

// Values are float or bf16. Tokens of a and c, [tokens, k] and [tokens, n], with `pair`; rows [rows, ..] as they are.
struct gathered_case {
    struct hk_grouped_dims dims;
    enum hk_write write;
    bool bf16, gathers;
    const int32_t *first, *pair;
    const void *a, *c, *a_rows, *c_rows;
    const void **chunk;
    int64_t chunk_size;
};

// Seeded values that bf16 can hold. Bytes behind the last one are counted as values, too.
static void *values(int64_t count, uint64_t seed, bool bf16) {
    real *from = test_reals(count, seed);
    if (!bf16) return from;
    hk_bf16 *to = (hk_bf16 *)test_nans((count + 1) / 2);
    for (int64_t i = 0; i < count; i++) to[i] = hk_bf16_round(from[i]);
    return to;
}

static const void *permuted(const struct gathered_case *x, const void *tokens, int64_t width) {
    const int64_t rows = x->first[experts], size = width * (x->bf16 ? 2 : 4);
    char *to = (char *)test_nans((rows * size + 3) / 4);
    for (int64_t r = 0; r < rows; r++) {
        memcpy(to + r * size, (const char *)tokens + x->pair[r] / picks * size, (size_t)size);
    }
    return to;
}

// CALL(grouped_nn, gathered_nn, type, result, gathered operand, the same by rows)
#define CALL_ROWS(name, T, type, out, tokens, rows)                                                \
    (x->gathers                                                                                    \
         ? hkc_gathered_##name##_##type(test_lane(), (T *)(out), tokens, x->pair, picks,           \
                                        (const T *const *)x->chunk, offset, x->first, x->dims,     \
                                        x->write)                                                  \
         : hkc_grouped_##name##_##type(test_lane(), (T *)(out), rows, (const T *const *)x->chunk,  \
                                       offset, x->first, x->dims, x->write, NULL),                 \
     test_join(#name))
#define CALL_TN(side, type, a_tokens, c_tokens)                                                    \
    (x->gathers ? hkc_gathered_tn_##side##_##type(test_lane(), grad, offset, a_tokens, c_tokens,   \
                                                  x->pair, picks, x->first, x->dims, x->write)     \
                : hkc_grouped_tn_##type(test_lane(), grad, offset, x->a_rows, x->c_rows, x->first, \
                                        x->dims, x->write),                                        \
     test_join("tn"))

static void run_nn(const void *context, real *out) {
    const struct gathered_case *x = context;
    if (x->bf16) {
        CALL_ROWS(nn, hk_bf16, bf16, out, x->a, x->a_rows);
    } else {
        CALL_ROWS(nn, float, f32, out, x->a, x->a_rows);
    }
}

static void run_nt(const void *context, real *out) {
    const struct gathered_case *x = context;
    if (x->bf16) {
        CALL_ROWS(nt, hk_bf16, bf16, out, x->c, x->c_rows);
    } else {
        CALL_ROWS(nt, float, f32, out, x->c, x->c_rows);
    }
}

static float **grads(const struct gathered_case *x, real *out) {
    float **grad = (float **)test_pointers(experts);
    for (int e = 0; e < experts; e++) grad[e] = out + e * x->chunk_size;
    return grad;
}

static void run_tn_a(const void *context, real *out) {
    const struct gathered_case *x = context;
    float **grad = grads(x, out);
    if (x->bf16) {
        CALL_TN(a, bf16, x->a, x->c_rows);
    } else {
        CALL_TN(a, f32, x->a, x->c_rows);
    }
}

static void run_tn_c(const void *context, real *out) {
    const struct gathered_case *x = context;
    float **grad = grads(x, out);
    if (x->bf16) {
        CALL_TN(c, bf16, x->a_rows, x->c);
    } else {
        CALL_TN(c, f32, x->a_rows, x->c);
    }
}

static struct gathered_case gathered_case(const int32_t *firsts, int64_t k, int64_t n,
                                          enum hk_write write, bool bf16) {
    const int64_t rows = firsts[experts];
    struct gathered_case x = {
        .dims = {.experts = experts, .n = n, .k = k},
        .write = write,
        .bf16 = bf16,
        .a = values(rows / picks * k, 1, bf16),
        .c = values(rows / picks * n, 2, bf16),
        .pair = test_ints(rows, (int32_t)rows, 3), // Any: products do not ask where rows come from.
        .chunk = (const void **)test_pointers(experts),
        .chunk_size = offset + k * n,
    };
    int32_t *first = test_ints(experts + 1, 1, 0);
    memcpy(first, firsts, sizeof ragged);
    x.first = first;
    x.a_rows = permuted(&x, x.a, k);
    x.c_rows = permuted(&x, x.c, n);
    for (int e = 0; e < experts; e++) x.chunk[e] = values(x.chunk_size, (uint64_t)(10 + e), bf16);
    return x;
}

static void check_same(const char *what, struct gathered_case *x,
                       void (*run)(const void *context, real *out), int64_t count) {
    real *got = test_reals(count, 4), *want = test_copy(got, count);
    x->gathers = false;
    run(x, want);
    x->gathers = true;
    run_with_threads(run, x, got, count);
    assert_same_bits(what, got, want, count);
}

static void check(const int32_t *firsts, int64_t k, int64_t n, enum hk_write write, bool bf16) {
    struct gathered_case x = gathered_case(firsts, k, n, write, bf16);
    const int64_t rows = firsts[experts], share = bf16 ? 2 : 1;
    check_same("nn", &x, run_nn, (rows * n + 1) / share);
    check_same("nt", &x, run_nt, (rows * k + 1) / share);
    check_same("tn_a", &x, run_tn_a, experts * x.chunk_size);
    check_same("tn_c", &x, run_tn_c, experts * x.chunk_size);
    test_free_all();
}

static void check_every_product(bool bf16) {
    check(ragged, 35, 70, HK_ADD, bf16);
    check(ragged, 40, 72, HK_STORE, bf16);
    check(crowded, 24, 8, HK_ADD, bf16);
    check(crowded, 17, 9, HK_STORE, bf16);
}

static void gathered_rows_are_those_of_permute(void **state) {
    (void)state;
    check_every_product(false);
}

static void so_they_are_of_bf16(void **state) {
    (void)state;
    check_every_product(true);
    check(few, 328, 392, HK_STORE, true); // More than one tile and all of its stages hold.
    check(few, 131, 268, HK_ADD, true);
}

// With instructions that every device has, on any device.
static void and_with_common_instructions(void **state) {
    (void)state;
    test_lane()->warpgroups = false;
    check_every_product(true);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gathered_rows_are_those_of_permute),
        cmocka_unit_test(so_they_are_of_bf16),
        cmocka_unit_test(and_with_common_instructions),
    };
    return RUN_KERNEL_TESTS(tests);
}
