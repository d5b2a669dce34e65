// Arrays of more than 2^32 elements: kernels' results for their first and for their last rows, against the same rows in
// small arrays, to the bit. On the emulator arrays are sparse, and grids run only their first and last blocks. For a
// launcher whose rows end in one sum only the rows are looked at.
#include <stdlib.h>

#include <cuda_runtime_api.h>

#include "kernels/launchers.h"
#include "tests/kernels/kernel_case.h"

void simt_sample(unsigned first, unsigned last) __attribute__((weak)); // The emulator's.

enum { NEAR = 8, OPERANDS = 6 }; // Rows of the small arrays.

// An array with rows of `bytes`; all arrays are [rows, ..]. One that is not `written` is read only.
struct operand {
    enum { NOTHING, FLOATS, VALUES, ZEROS } fill; // Inputs: floats, values of bf16, ids.
    int64_t bytes;
    bool written;
};

// `launch` runs the kernel on `rows` rows, which lie at at[0], at[1] ...
struct far_case {
    const char *name;
    void (*launch)(void **at, int64_t rows);
    int64_t rows;
    struct operand operand[OPERANDS];
    unsigned first, last; // Blocks that run, in each direction of the grid; 0 and 0: 64.
};

static void copy(void *to, const void *from, int64_t bytes) {
    cudaStream_t stream = test_lane()->stream;
    assert_int_equal(cudaMemcpyAsync(to, from, (size_t)bytes, cudaMemcpyDefault, stream), 0);
    assert_int_equal(cudaStreamSynchronize(stream), 0);
}

static void *near_array(const struct operand *x, uint64_t seed) {
    const int64_t count = NEAR * x->bytes / 4;
    if (x->fill == ZEROS) return memset(test_nans(count), 0, (size_t)(4 * count));
    if (x->fill == FLOATS) return test_reals(count, seed);
    const real *from = test_reals(2 * count, seed);
    hk_bf16 *to = (hk_bf16 *)test_nans(count);
    for (int64_t i = 0; i < 2 * count; i++) to[i] = hk_bf16_round(from[i]);
    return to;
}

// An array of the device alone; on the emulator it takes no memory before it is touched, and is zeros as on a device.
static char *far_array(int64_t bytes) {
    void *memory = NULL;
    if (cudaMalloc(&memory, (size_t)bytes) != cudaSuccess) return NULL;
    if (!simt_sample &&
        cudaMemsetAsync(memory, 0, (size_t)bytes, test_lane()->stream) != cudaSuccess)
        return NULL;
    return memory;
}

static void run(const struct far_case *x, void **at, int64_t rows, bool sampled) {
    const unsigned first = x->last ? x->first : 64, last = x->last ? x->last : 64;
    if (simt_sample && sampled) simt_sample(first, last);
    x->launch(at, rows);
    test_join(x->name);
    if (simt_sample) simt_sample(0, 0);
}

// Rows that the first and the last blocks have computed.
static void compare(const struct far_case *x, int i, const char *far, const void *near) {
    const int64_t bytes = NEAR * x->operand[i].bytes;
    char *got = (char *)test_nans(bytes / 4);
    copy(got, far + (x->rows - NEAR) * x->operand[i].bytes, bytes);
    assert_same_bits(x->name, (const real *)got, near, bytes / 4);
    if (x->last && !x->first) return;
    copy(got, far, bytes);
    assert_same_bits(x->name, (const real *)got, near, bytes / 4);
}

static void check(const struct far_case *x) {
    void *near[OPERANDS] = {0}, *far[OPERANDS] = {0};
    bool room = true;
    for (int i = 0; i < OPERANDS; i++) {
        const struct operand *operand = &x->operand[i];
        const int64_t bytes = operand->bytes, end = (x->rows - NEAR) * bytes;
        if (!bytes) continue;
        near[i] = near_array(operand, (uint64_t)i + 1);
        far[i] = room ? far_array(x->rows * bytes) : NULL;
        room = room && far[i];
        if (!room) continue;
        copy(far[i], near[i], NEAR * bytes);
        copy((char *)far[i] + end, near[i], NEAR * bytes);
    }
    if (room) {
        run(x, near, NEAR, false);
        run(x, far, x->rows, true);
        for (int i = 0; i < OPERANDS; i++)
            if (x->operand[i].written) compare(x, i, far[i], near[i]);
    } else {
        assert_null(simt_sample);
        print_message("%s: this device has no room for it\n", x->name);
    }
    for (int i = 0; i < OPERANDS; i++) cudaFree(far[i]);
    test_free_all();
}

// ---- rows of values

enum { WIDTH = 2048, NARROW = 256, VOCABULARY = 65536, EXPERTS = 512, PICKS = 2 };
enum { WIDE_BYTES = 2 * WIDTH, NARROW_BYTES = 4 * NARROW, LOGITS_BYTES = 2 * VOCABULARY };

// Rows of so many elements, of which there are more than 2^32.
#define ROWS_OF(width) ((1LL << 32) / (width) + 3 * NEAR)

// Values that all rows share.
static real *shared(int64_t count) {
    return test_reals(count, 99);
}

static void rmsnorm(void **at, int64_t rows) {
    hkc_rmsnorm_bf16(test_lane(), at[0], at[1], at[2], shared(WIDTH), rows, WIDTH, 1e-5);
}

static void narrow_rmsnorm(void **at, int64_t rows) {
    hkc_rmsnorm_f32(test_lane(), at[0], at[1], at[2], shared(NARROW), rows, NARROW, 1e-5);
}

static void rmsnorm_grad(void **at, int64_t rows) {
    hkc_rmsnorm_grad_bf16(test_lane(), at[0], NULL, at[1], at[2], at[3], shared(WIDTH), rows, WIDTH,
                          HK_ADD, HK_ADD);
}

static void layernorm(void **at, int64_t rows) {
    hkc_layernorm_bf16(test_lane(), at[0], at[1], at[2], at[3], shared(WIDTH), shared(WIDTH), rows,
                       WIDTH, 1e-5);
}

static void layernorm_grad(void **at, int64_t rows) {
    hkc_layernorm_grad_bf16(test_lane(), at[0], NULL, NULL, at[1], at[2], at[3], at[4],
                            shared(WIDTH), rows, WIDTH, HK_STORE, HK_ADD);
}

static void softmax(void **at, int64_t rows) {
    hkc_softmax_bf16(test_lane(), at[0], at[1], rows, WIDTH);
}

static void softmax_grad(void **at, int64_t rows) {
    hkc_softmax_grad_bf16(test_lane(), at[0], at[1], at[2], rows, WIDTH, HK_STORE);
}

static void sum_of_row(void **at, int64_t rows) {
    hkc_sum_columns_bf16(test_lane(), at[0], at[1], rows, WIDTH, HK_ADD);
}

static void rope(void **at, int64_t rows) {
    const struct hk_rope_dims dims = {rows, 1, 4, WIDTH / 4, false};
    hkc_rope_bf16(test_lane(), at[0], at[1], shared(WIDTH / 4), dims);
}

static void cross_entropy(void **at, int64_t rows) {
    hkc_cross_entropy_bf16(test_lane(), shared(1), at[0], at[1], at[2], NULL, shared(1), rows,
                           VOCABULARY);
}

static void cross_entropy_grad(void **at, int64_t rows) {
    hkc_cross_entropy_grad_bf16(test_lane(), at[0], shared(1), at[1], at[2], at[3], NULL, shared(1),
                                rows, VOCABULARY);
}

static void router_grad(void **at, int64_t rows) {
    const struct hk_router_rule rule = {.experts = EXPERTS,
                                        .topk = PICKS,
                                        .score = HK_SOFTMAX,
                                        .weight = HK_RENORMALIZED,
                                        .scale = 1};
    hkc_router_grad_f32(test_lane(), at[0], at[1], at[2], at[3], at[4], at[5], rows, rule);
}

static void rows_that_lie_far(void **state) {
    (void)state;
    static const struct operand out = {VALUES, WIDE_BYTES, true}, in = {VALUES, WIDE_BYTES, false},
                                number = {FLOATS, 4, false}, result = {FLOATS, 4, true},
                                id = {ZEROS, 4, false};
    static const struct operand logits = {VALUES, LOGITS_BYTES, false};
    const struct far_case all[] = {
        {"rmsnorm", rmsnorm, ROWS_OF(WIDTH), {out, result, in}, 0, 0},
        {"narrow rmsnorm",
         narrow_rmsnorm,
         ROWS_OF(NARROW),
         {{FLOATS, NARROW_BYTES, true}, result, {FLOATS, NARROW_BYTES, false}},
         0,
         0},
        {"rmsnorm_grad", rmsnorm_grad, ROWS_OF(WIDTH), {out, in, in, number}, 0, 0},
        {"layernorm", layernorm, ROWS_OF(WIDTH), {out, result, result, in}, 0, 0},
        {"layernorm_grad", layernorm_grad, ROWS_OF(WIDTH), {out, in, in, number, number}, 0, 0},
        {"softmax", softmax, ROWS_OF(WIDTH), {out, in}, 0, 0},
        {"softmax_grad", softmax_grad, ROWS_OF(WIDTH), {out, in, in}, 0, 0},
        {"sum_columns", sum_of_row, ROWS_OF(WIDTH), {result, in}, 0, 0},
        {"rope", rope, ROWS_OF(WIDTH), {out, in}, 0, 0},
        {"cross_entropy", cross_entropy, ROWS_OF(VOCABULARY), {result, logits, id}, 8, 8},
        {"cross_entropy_grad",
         cross_entropy_grad,
         ROWS_OF(VOCABULARY),
         {{VALUES, LOGITS_BYTES, true}, logits, number, id},
         8,
         8},
        {"router_grad",
         router_grad,
         ROWS_OF(EXPERTS),
         {{FLOATS, 4 * EXPERTS, true},
          {FLOATS, 4 * PICKS, false},
          {FLOATS, 4 * EXPERTS, false},
          {FLOATS, 4 * EXPERTS, false},
          {FLOATS, 4 * PICKS, false},
          {ZEROS, 4 * PICKS, false}},
         0,
         0},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) check(&all[i]);
}

// ---- rows that are named by numbers

// The last of `rows` rows, by their numbers.
static int32_t *last_rows(int64_t rows) {
    int32_t *number = test_ints(NEAR, 1, 0);
    for (int i = 0; i < NEAR; i++) number[i] = (int32_t)(rows - NEAR + i);
    return number;
}

static void *last(void *at, int64_t rows, int64_t bytes) {
    return (char *)at + (rows - NEAR) * bytes;
}

static void permute_to(void **at, int64_t rows) {
    hkc_permute_bf16(test_lane(), at[0], at[1], at[2], rows, 1, WIDTH);
}

static void permute_from(void **at, int64_t rows) {
    hkc_permute_bf16(test_lane(), last(at[0], rows, WIDE_BYTES), at[1], last_rows(rows), NEAR, 1,
                     WIDTH);
}

static void combine_to(void **at, int64_t rows) {
    hkc_combine_bf16(test_lane(), at[0], at[1], at[2], rows, 1, WIDTH, HK_ADD);
}

static void combine_from(void **at, int64_t rows) {
    hkc_combine_bf16(test_lane(), last(at[0], rows, WIDE_BYTES), at[1], last_rows(rows), NEAR, 1,
                     WIDTH, HK_STORE);
}

static void gather_to(void **at, int64_t rows) {
    hkc_gather_bf16(test_lane(), at[0], at[1], at[2], rows, WIDTH);
}

static void gather_from(void **at, int64_t rows) {
    hkc_gather_bf16(test_lane(), last(at[0], rows, WIDE_BYTES), at[1], last_rows(rows), NEAR,
                    WIDTH);
}

static void gather_grad(void **at, int64_t rows) {
    hkc_gather_grad_bf16(test_lane(), at[0], last(at[1], rows, WIDE_BYTES), last_rows(rows), NEAR,
                         rows, WIDTH, HK_ADD);
}

static void gathered(void **at, int64_t rows) {
    int32_t *first = test_ints(2, 1, 0);
    const void **chunk = (const void **)test_pointers(1);
    first[1] = NEAR;
    chunk[0] = last(at[2], rows, WIDE_BYTES);
    hkc_gathered_nn_bf16(test_lane(), last(at[0], rows, WIDE_BYTES), at[1], last_rows(rows), 1,
                         (const hk_bf16 *const *)chunk, 0, first,
                         (struct hk_grouped_dims){.experts = 1, .n = 4, .k = WIDTH}, HK_STORE);
}

static void numbers_of_rows_that_lie_far(void **state) {
    (void)state;
    static const struct operand out = {VALUES, WIDE_BYTES, true}, in = {VALUES, WIDE_BYTES, false},
                                id = {ZEROS, 4, false}, table = {FLOATS, 4 * WIDTH, false};
    const struct far_case all[] = {
        {"permute", permute_to, ROWS_OF(WIDTH), {out, in, id}, 0, 0},
        {"permute from", permute_from, ROWS_OF(WIDTH), {out, in}, 0, 64},
        {"combine", combine_to, ROWS_OF(WIDTH), {out, in, id}, 0, 0},
        {"combine from", combine_from, ROWS_OF(WIDTH), {out, in}, 0, 64},
        {"gather", gather_to, ROWS_OF(WIDTH), {out, table, id}, 0, 0},
        {"gather from", gather_from, ROWS_OF(WIDTH), {out, table}, 0, 64},
        {"gather_grad", gather_grad, ROWS_OF(WIDTH), {{FLOATS, 4 * WIDTH, true}, in}, 0, 64},
        {"gathered", gathered, ROWS_OF(WIDTH), {out, in, in}, 0, 64},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) check(&all[i]);
}

// ---- elements, four in a row

static const struct hk_adamw_rule rule = {.lr = 1e-2,
                                          .beta1 = 0.9,
                                          .beta2 = 0.95,
                                          .eps = 1e-8,
                                          .grad_scale = 1,
                                          .correction1 = 0.1,
                                          .correction2 = 0.05};

static void adamw(void **at, int64_t rows) {
    hkc_adamw_rounded_f32(test_lane(), at[0], at[1], at[2], at[3], at[4], 4 * rows, HK_ROWS, &rule);
}

static void rounded(void **at, int64_t rows) {
    hkc_round_bf16(test_lane(), at[0], at[1], 4 * rows);
}

static void elements_that_lie_far(void **state) {
    (void)state;
    static const struct operand out = {FLOATS, 16, true}, in = {FLOATS, 16, false},
                                half = {ZEROS, 8, true}, none = {ZEROS, 16, true};
    const struct far_case all[] = {
        {"adamw", adamw, ROWS_OF(4), {out, half, in, out, none}, 0, 0},
        {"round", rounded, ROWS_OF(4), {half, in}, 0, 0},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) check(&all[i]);
}

// ---- products, a tile for each block

enum { TILE = 128 };

static hk_bf16 *weights(void) {
    hk_bf16 *to = (hk_bf16 *)test_nans(TILE * TILE / 2);
    const real *from = shared(TILE * TILE);
    for (int i = 0; i < TILE * TILE; i++) to[i] = hk_bf16_round(from[i]);
    return to;
}

static struct hk_matmul_dims square(int64_t rows) {
    return (struct hk_matmul_dims){.m = rows, .n = TILE, .k = TILE};
}

static void nn(void **at, int64_t rows) {
    hkc_matmul_nn_bf16(test_lane(), at[0], at[1], weights(), HK_ROWS, square(rows), HK_STORE, NULL);
}

static void nt(void **at, int64_t rows) {
    hkc_matmul_nt_bf16(test_lane(), at[0], at[1], weights(), HK_ROWS, square(rows), HK_STORE, NULL);
}

static void nn_of_floats(void **at, int64_t rows) {
    hkc_matmul_nn_f32(test_lane(), at[0], at[1], shared(TILE * TILE), HK_ROWS, square(rows),
                      HK_STORE, NULL);
}

// Gradients of the second expert, whose rows are the last ones; those of the first one are not computed.
static void tn(void **at, int64_t rows) {
    int32_t *first = test_ints(3, 1, 0);
    real **grad = (real **)test_pointers(2);
    first[1] = (int32_t)(rows - NEAR), first[2] = (int32_t)rows;
    grad[0] = test_reals(NEAR * TILE, 5);
    grad[1] = last(at[0], rows, 4 * TILE);
    hkc_grouped_tn_bf16(test_lane(), grad, 0, at[1], at[2], first,
                        (struct hk_grouped_dims){.experts = 2, .n = TILE, .k = NEAR}, HK_STORE);
}

static void products_of_rows_that_lie_far(void **state) {
    (void)state;
    static const struct operand out = {VALUES, 2 * TILE, true}, in = {VALUES, 2 * TILE, false};
    static const struct operand sums = {FLOATS, 4 * TILE, true}, row = {FLOATS, 4 * TILE, false},
                                few = {VALUES, 2 * NEAR, false};
    const struct far_case all[] = {
        {"nn", nn, ROWS_OF(TILE), {out, in}, 1, 2},
        {"nt", nt, ROWS_OF(TILE), {out, in}, 1, 2},
        {"nn of floats", nn_of_floats, ROWS_OF(TILE), {sums, row}, 1, 2},
        {"tn", tn, ROWS_OF(TILE), {sums, few, in}, 0, 1},
    };
    struct hkc_lane *lane = test_lane();
    const int multiprocessors = lane->multiprocessors;
    const bool warpgroups = lane->warpgroups;
    lane->multiprocessors = 1 << 26; // So that no block has to walk to the last tile.
    for (int common = 0; common <= warpgroups; common++) {
        lane->warpgroups = warpgroups && !common;
        for (size_t i = 0; i < sizeof all / sizeof *all; i++) check(&all[i]);
    }
    lane->warpgroups = warpgroups;
    lane->multiprocessors = multiprocessors;
}

// ---- attention, a sequence in a row

enum { POSITIONS = 80, HEADS = 4, HEAD = 256 };

static struct hk_sdpa_dims sequences(int64_t rows) {
    return (struct hk_sdpa_dims){.batch = rows,
                                 .positions = POSITIONS,
                                 .heads = HEADS,
                                 .groups = HEADS,
                                 .width = HEAD,
                                 .vwidth = HEAD,
                                 .causal = true,
                                 .scale = 0.0625};
}

static void sdpa(void **at, int64_t rows) {
    hkc_sdpa_bf16(test_lane(), at[0], at[1], at[2], at[3], at[4], NULL, sequences(rows));
}

static void sequences_that_lie_far(void **state) {
    (void)state;
    enum { SEQUENCE = POSITIONS * HEADS * HEAD };
    static const struct operand in = {VALUES, 2 * SEQUENCE, false};
    const struct far_case x = {
        "sdpa",
        sdpa,
        ROWS_OF(SEQUENCE),
        {{VALUES, 2 * SEQUENCE, true}, {FLOATS, 4 * POSITIONS * HEADS, true}, in, in, in},
        8,
        8};
    check(&x);
}

int main(void) {
    setenv("SIMT_MEMORY", "268435456", 0); // 256 GiB.
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_that_lie_far),      cmocka_unit_test(numbers_of_rows_that_lie_far),
        cmocka_unit_test(elements_that_lie_far),  cmocka_unit_test(products_of_rows_that_lie_far),
        cmocka_unit_test(sequences_that_lie_far),
    };
    return RUN_KERNEL_TESTS(tests);
}
