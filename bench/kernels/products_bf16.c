// The products with bf16 operands, plain and grouped.
#include "bench/kernels/bench.h"

#include <stdio.h>

#include "kernels/grouped/grouped.h"
#include "kernels/matmul/matmul.h"

enum { experts = 64 };

// One product, or one per expert over rows first[e] .. first[e+1]-1.
struct products {
    struct hk_matmul_dims dims;
    struct hk_grouped_dims grouped;
    float *a, *c;
    const hk_bf16 *weights[experts];
    float *grad[experts];
    int32_t first[experts + 1];
};

static void run_nn(void *context) {
    const struct products *x = context;
    hk_matmul_nn_bf16(x->c, x->a, x->weights[0], HK_PANELS, x->dims, HK_STORE, NULL);
}

static void run_nt(void *context) {
    const struct products *x = context;
    hk_matmul_nt_bf16(x->a, x->c, x->weights[0], HK_PANELS, x->dims, HK_STORE, NULL);
}

static void run_tn(void *context) {
    const struct products *x = context;
    hk_matmul_tn_bf16(x->grad[0], x->a, x->c, HK_PANELS, x->dims, HK_ADD);
}

static void run_grouped_nn(void *context) {
    const struct products *x = context;
    hk_grouped_nn_bf16(x->c, x->a, x->weights, 0, x->first, x->grouped, HK_STORE, NULL);
}

static void run_grouped_nt(void *context) {
    const struct products *x = context;
    hk_grouped_nt_bf16(x->a, x->c, x->weights, 0, x->first, x->grouped, HK_STORE, NULL);
}

static void run_grouped_tn(void *context) {
    const struct products *x = context;
    hk_grouped_tn_bf16(x->grad, 0, x->a, x->c, x->first, x->grouped, HK_ADD);
}

static void make(struct products *x, int64_t m, int64_t k, int64_t n, int count) {
    x->dims = (struct hk_matmul_dims){.m = m, .n = n, .k = k};
    x->grouped = (struct hk_grouped_dims){.experts = count, .n = n, .k = k};
    x->a = bench_floats(count * m * k);
    x->c = bench_floats(count * m * n);
    x->first[0] = 0;
    for (int e = 0; e < count; e++) {
        const int64_t size = hk_panels_size_bf16(k, n);
        hk_bf16 *weights = (hk_bf16 *)bench_floats(size / 2);
        x->grad[e] = bench_floats(size);
        hk_round_panels_bf16(weights, x->grad[e], k, n);
        x->weights[e] = weights;
        x->first[e + 1] = (int32_t)((e + 1) * m);
    }
}

static void bench_matmul(int64_t m, int64_t k, int64_t n) {
    struct products x;
    char shape[64];
    const double flops = 2.0 * (double)m * (double)n * (double)k;
    snprintf(shape, sizeof shape, "M=%d K=%d N=%d", (int)m, (int)k, (int)n);
    make(&x, m, k, n, 1);
    bench_print("matmul_nn_bf16", shape, "hecate", flops, 0, bench_seconds(run_nn, &x));
    bench_rivals_bf16("matmul_nn_bf16", shape, m, n, k, 1);
    bench_print("matmul_nt_bf16", shape, "hecate", flops, 0, bench_seconds(run_nt, &x));
    bench_print("matmul_tn_bf16", shape, "hecate", flops, 0, bench_seconds(run_tn, &x));
    bench_free_all();
}

void bench_products_bf16(void) {
    static const int64_t widths[][2] = {{256, 512}, {512, 1024}, {768, 1536}, {1024, 4096}};
    static const int64_t rows[] = {16, 64, 256, 1024, 4096};
    for (int w = 0; w < 4; w++) {
        for (int r = 0; r < 5; r++) bench_matmul(rows[r], widths[w][0], widths[w][1]);
    }
}

static void bench_experts(int64_t rows, int64_t k, int64_t n) {
    struct products x;
    char shape[64];
    const double flops = 2.0 * experts * (double)rows * (double)n * (double)k;
    snprintf(shape, sizeof shape, "64 x M=%d K=%d N=%d", (int)rows, (int)k, (int)n);
    make(&x, rows, k, n, experts);
    bench_print("grouped_nn_bf16", shape, "hecate", flops, 0, bench_seconds(run_grouped_nn, &x));
    bench_rivals_bf16("grouped_nn_bf16", shape, rows, n, k, experts);
    bench_print("grouped_nt_bf16", shape, "hecate", flops, 0, bench_seconds(run_grouped_nt, &x));
    bench_print("grouped_tn_bf16", shape, "hecate", flops, 0, bench_seconds(run_grouped_tn, &x));
    bench_free_all();
}

void bench_grouped_bf16(void) {
    static const int64_t rows[] = {4, 16, 64, 256};
    for (int r = 0; r < 4; r++) bench_experts(rows[r], 512, 1024);
}
