// The calls of an observer, and that it changes nothing.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <omp.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "kernels/cpu/observe.h"
#include "kernels/cpu/peak.h"
#include "kernels/kernels.h"

enum { calls_max = 8 };

struct seen {
    struct hk_call call[calls_max];
    int calls;
};

static void note(void *context, const struct hk_call *call) {
    struct seen *seen = context;
    assert_true(seen->calls < calls_max);
    seen->call[seen->calls++] = *call;
}

static void expect_call(const struct seen *seen, int index, const char *name, const char *sizes,
                        const int64_t *size, int count, double flops, double bytes) {
    assert_true(index < seen->calls);
    const struct hk_call *call = &seen->call[index];
    assert_string_equal(call->name, name);
    assert_string_equal(call->work.sizes, sizes);
    for (int i = 0; i < HK_DIMS_MAX; i++)
        assert_true(call->work.size[i] == (i < count ? size[i] : 0));
    assert_true(call->work.flops == flops);
    assert_true(call->work.bytes == bytes);
    assert_true(call->end >= call->start && call->start > 0);
}

static void products_report_sizes_flops_and_bytes(void **state) {
    (void)state;
    static float a[3 * 5], b[5 * 64], c[3 * 7];
    struct seen seen = {0};
    const struct hk_observer observer = {note, &seen};
    const struct hk_matmul_dims dims = {.m = 3, .n = 7, .k = 5};
    hk_observe(&observer);
    hk_matmul_nn_f32(c, a, b, HK_PANELS, dims, HK_STORE, NULL);
    hk_matmul_nt_f32(a, c, b, HK_PANELS, dims, HK_ADD, NULL);
    hk_matmul_tn_f32(b, a, c, HK_PANELS, dims, HK_ADD);
    hk_observe(NULL);
    hk_matmul_nn_f32(c, a, b, HK_PANELS, dims, HK_STORE, NULL);

    const int64_t size[] = {3, 7, 5};
    assert_int_equal(seen.calls, 3);
    expect_call(&seen, 0, "matmul_nn", "m n k", size, 3, 2 * 3 * 7 * 5, 4 * (15 + 35 + 21));
    expect_call(&seen, 1, "matmul_nt", "m n k", size, 3, 2 * 3 * 7 * 5, 4 * (21 + 35 + 2 * 15));
    expect_call(&seen, 2, "matmul_tn", "m n k", size, 3, 2 * 3 * 7 * 5, 4 * (21 + 15 + 2 * 35));
    for (int i = 0; i < 3; i++) assert_int_equal(seen.call[i].work.kind, HK_KIND_PRODUCT);
}

// Weights count two bytes each; everything else is float.
static void bf16_products_have_names_of_their_own(void **state) {
    (void)state;
    static float a[3 * 5], c[3 * 7], grad[5 * 64];
    static hk_bf16 b[6 * 64];
    const float *const rows = a;
    const hk_bf16 *const chunks[] = {b};
    float *const grads[] = {grad};
    const int32_t first[] = {0, 3};
    struct seen seen = {0};
    const struct hk_observer observer = {note, &seen};
    const struct hk_matmul_dims dims = {.m = 3, .n = 7, .k = 5};
    const struct hk_grouped_dims grouped = {.experts = 1, .n = 7, .k = 5};
    hk_observe(&observer);
    hk_matmul_nn_bf16(c, rows, b, HK_PANELS, dims, HK_STORE, NULL);
    hk_grouped_nt_bf16(a, c, chunks, 0, first, grouped, HK_ADD, NULL);
    hk_grouped_tn_bf16(grads, 0, rows, c, first, grouped, HK_ADD);
    hk_observe(NULL);

    const int64_t size[] = {3, 7, 5}, sizes[] = {3, 1, 7, 5};
    const double flops = 2 * 3 * 7 * 5;
    assert_int_equal(seen.calls, 3);
    expect_call(&seen, 0, "matmul_nn_bf16", "m n k", size, 3, flops, 4 * (15 + 21) + 2 * 35);
    expect_call(&seen, 1, "grouped_nt_bf16", "~rows experts n k", sizes, 4, flops,
                4 * (21 + 2 * 15) + 2 * 35 + 4);
    expect_call(&seen, 2, "grouped_tn_bf16", "~rows experts n k", sizes, 4, flops,
                4 * (21 + 15 + 2 * 35) + 4);
    for (int i = 0; i < 3; i++) assert_int_equal(seen.call[i].work.kind, HK_KIND_PRODUCT);
}

// The expert without rows is not read.
static void grouped_products_report_their_rows(void **state) {
    (void)state;
    static double a[5 * 2], c[5 * 3], chunk[3][2 * 64];
    const double *const chunks[] = {chunk[0], chunk[1], chunk[2]};
    const int32_t first[] = {0, 4, 4, 5}, ids[] = {0, 0, 0, 0, 2};
    int32_t order[4], pair[5], slot[5];
    struct seen seen = {0};
    const struct hk_observer observer = {note, &seen};
    hk_observe(&observer);
    hk_route(order, pair, slot, ids, 5, 1, 3);
    hk_grouped_nn_f64(c, a, chunks, 0, first,
                      (struct hk_grouped_dims){.experts = 3, .n = 3, .k = 2}, HK_STORE, NULL);
    hk_observe(NULL);

    const int64_t route[] = {5, 1, 3}, product[] = {5, 3, 3, 2};
    assert_int_equal(seen.calls, 2);
    expect_call(&seen, 0, "route", "tokens topk experts", route, 3, 0, 80);
    expect_call(&seen, 1, "grouped_nn", "~rows experts n k", product, 4, 2 * 5 * 3 * 2,
                8 * (10 + 2 * 6 + 15) + 4 * 3);
}

static int64_t pairs_of(const struct hk_sdpa_dims *d) {
    int64_t pairs = 0;
    for (int64_t query = 0; query < d->positions; query++) {
        for (int64_t key = 0; key < d->positions; key++) {
            const bool hidden = (d->causal && key > query) ||
                                (d->window > 0 && query - key >= d->window) ||
                                (d->chunk > 0 && query / d->chunk != key / d->chunk);
            pairs += hidden ? 0 : d->batch * d->heads;
        }
    }
    return pairs;
}

static void attention_counts_the_pairs_that_the_mask_leaves(void **state) {
    (void)state;
    enum { elements = 2 * 6 * 4 * 3 };
    static float q[elements], k[elements], v[elements], out[elements], lse[2 * 6 * 4];
    static float dq[elements], dk[elements], dv[elements], dout[elements];
    for (int causal = 0; causal <= 1; causal++) {
        for (int64_t i = 0; i <= 7 + 4 * causal; i++) {
            const int64_t window = i % 8, chunk = i / 8 * 4; // Chunks with causal.
            const struct hk_sdpa_dims d = {2,     6,           4, 2, 3,    2, window,
                                           chunk, causal != 0, 1, 0, NULL, 0, 0};
            struct seen seen = {0};
            const struct hk_observer observer = {note, &seen};
            hk_observe(&observer);
            hk_sdpa_f32(out, lse, q, k, v, NULL, d);
            hk_sdpa_grad_f32(dq, dk, dv, dout, q, k, v, out, lse, d);
            hk_observe(NULL);
            const double pairs = (double)pairs_of(&d);
            assert_int_equal(seen.calls, 2);
            assert_int_equal(seen.call[1].work.kind, HK_KIND_ATTENTION);
            assert_true(seen.call[0].work.flops == 2 * pairs * (3 + 2));
            assert_true(seen.call[1].work.flops == 2 * pairs * (3 * 3 + 2 * 2));
            assert_true(seen.call[0].work.bytes == 4 * 2 * 6 * (4 + 2) * (3 + 2));
        }
    }
}

// The time of the epilogue itself, on all threads.
static void take_time(void *model, int64_t layer, struct hk_block block) {
    int64_t *taken = model;
    const int64_t start = hk_clock();
    while (hk_clock() < start + 300000) {
    }
    const int64_t ns = hk_clock() - start;
    (void)layer, (void)block;
#pragma omp atomic
    *taken += ns;
}

enum { m = 96, n = 1200, k = 64, panels = (n + 63) / 64 * 64 };

// Whether the time of the epilogue was told as the mean over `threads` threads, and closely: between
// its look at the clock and ours the machine may do something else.
static bool tells_the_mean(int threads) {
    static float a[m * k], b[panels * k], c[m * n];
    const struct hk_matmul_dims dims = {.m = m, .n = n, .k = k};
    int64_t taken = 0;
    struct seen seen = {0};
    const struct hk_observer observer = {note, &seen};
    const struct hk_epilogue epilogue = {take_time, &taken, 0};
    omp_set_num_threads(threads);
    hk_matmul_nn_f32(c, a, b, HK_PANELS, dims, HK_STORE, &epilogue); // Nobody observes.
    taken = 0;
    hk_observe(&observer);
    hk_matmul_nn_f32(c, a, b, HK_PANELS, dims, HK_STORE, &epilogue);
    hk_matmul_nn_f32(c, a, b, HK_PANELS, dims, HK_STORE, NULL);
    hk_observe(NULL);
    const struct hk_call *with = &seen.call[0];
    assert_int_equal(seen.calls, 2);
    assert_true(with->epilogue_ns > taken / threads - 100);
    assert_true(with->epilogue_ns <= with->end - with->start);
    assert_int_equal(seen.call[1].epilogue_ns, 0); // It is this call's alone.
    return with->epilogue_ns < 5 * taken / (4 * threads);
}

static void epilogues_report_their_time(void **state) {
    (void)state;
    for (int threads = 1; threads <= 3; threads++) {
        int tries = 0;
        while (!tells_the_mean(threads)) assert_true(++tries < 100);
    }
}

static void call_some(void) {
    static float a[3 * 5], b[5 * 64], c[3 * 7];
    const struct hk_matmul_dims dims = {.m = 3, .n = 7, .k = 5};
    hk_matmul_nn_f32(c, a, b, HK_PANELS, dims, HK_STORE, NULL);
}

// As a block of an emitted program does.
static void call_in_lines(void) {
    struct hk_lines lines HK_LINES_END = {0};
    call_some();
    hk_line(&lines, "m.moe:7");
    call_some();
    hk_line(&lines, "m.moe:8");
    call_some();
}

static void calls_are_of_the_line_that_is_told_last(void **state) {
    (void)state;
    struct seen seen = {0};
    const struct hk_observer observer = {note, &seen};
    struct hk_lines lines HK_LINES_END = {0};
    call_in_lines(); // Nobody observes.
    hk_observe(&observer);
    call_in_lines();
    hk_line(&lines, "m.moe:3");
    call_in_lines();
    call_some();
    hk_observe(NULL);
    const char *const line[] = {NULL,      "m.moe:7", "m.moe:8", "m.moe:3",
                                "m.moe:7", "m.moe:8", "m.moe:3"};
    assert_int_equal(seen.calls, 7);
    for (int i = 0; i < 7; i++) {
        assert_true(!seen.call[i].line == !line[i]);
        if (line[i]) assert_string_equal(seen.call[i].line, line[i]);
    }
}

static void only_the_thread_that_asked_is_observed(void **state) {
    (void)state;
    struct seen seen = {0};
    const struct hk_observer observer = {note, &seen};
    hk_observe(&observer);
#pragma omp parallel num_threads(2)
    {
        const float x[4] = {1, 2, 3, 4};
        if (omp_get_thread_num() == 1) hk_sum_squares_f32(x, 4);
    }
    hk_observe(NULL);
    assert_int_equal(seen.calls, 0);
}

static void results_are_the_same_with_and_without(void **state) {
    (void)state;
    static float x[64], silent[64], observed[64], rstd[8];
    for (int i = 0; i < 64; i++) x[i] = (float)(i * i % 17) - 8;
    struct seen seen = {0};
    const struct hk_observer observer = {note, &seen};
    hk_rmsnorm_f32(silent, rstd, x, NULL, 8, 8, 1e-6);
    const double squares = hk_sum_squares_f32(x, 64);
    hk_observe(&observer);
    hk_rmsnorm_f32(observed, rstd, x, NULL, 8, 8, 1e-6);
    assert_true(hk_sum_squares_f32(x, 64) == squares);
    hk_observe(NULL);
    assert_int_equal(seen.calls, 2);
    assert_memory_equal(silent, observed, sizeof silent);
}

// The clock of a machine that others use is no instrument: only what cannot be otherwise.
static void the_peak_grows_with_threads_and_narrow_elements(void **state) {
    (void)state;
    omp_set_num_threads(1);
    const double one = hk_peak_f32(), half = hk_peak_f64();
    omp_set_num_threads(2);
    const double two = hk_peak_f32();
    assert_true(half > 0.1 && one < 1e4);
    assert_true(one > 1.3 * half);
    assert_true(two > 0.8 * one); // Both may share one core.
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_report_sizes_flops_and_bytes),
        cmocka_unit_test(grouped_products_report_their_rows),
        cmocka_unit_test(bf16_products_have_names_of_their_own),
        cmocka_unit_test(attention_counts_the_pairs_that_the_mask_leaves),
        cmocka_unit_test(epilogues_report_their_time),
        cmocka_unit_test(calls_are_of_the_line_that_is_told_last),
        cmocka_unit_test(only_the_thread_that_asked_is_observed),
        cmocka_unit_test(results_are_the_same_with_and_without),
        cmocka_unit_test(the_peak_grows_with_threads_and_narrow_elements),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
