// The products, plain and grouped.
#include "bench/kernels/bench.h"

#include <stdio.h>

#include "kernels/grouped/grouped.h"
#include "kernels/matmul/matmul.h"

struct matmul {
    struct hk_matmul_dims dims;
    float *a, *b, *c, *panels;
};

static void run_nn(void *context) {
    const struct matmul *x = context;
    hk_matmul_nn_f32(x->c, x->a, x->panels, HK_PANELS, x->dims, HK_STORE, NULL);
}

static void run_nt(void *context) {
    const struct matmul *x = context;
    hk_matmul_nt_f32(x->a, x->c, x->panels, HK_PANELS, x->dims, HK_STORE, NULL);
}

static void run_tn(void *context) {
    const struct matmul *x = context;
    hk_matmul_tn_f32(x->panels, x->a, x->c, HK_PANELS, x->dims, HK_ADD);
}

static void bench_matmul(int64_t m, int64_t k, int64_t n) {
    const struct matmul x = {
        .dims = {.m = m, .n = n, .k = k},
        .a = bench_floats(m * k),
        .b = bench_floats(k * n),
        .c = bench_floats(m * n),
        .panels = bench_floats(hk_panels_size(k, n)),
    };
    const double flops = 2.0 * (double)m * (double)n * (double)k;
    char shape[64];
    snprintf(shape, sizeof shape, "M=%d K=%d N=%d", (int)m, (int)k, (int)n);
    hk_panels_pack_f32(x.panels, x.b, k, n);

    void *context = (void *)&x;
    bench_print("matmul_nn", shape, "hecate", flops, 0, bench_seconds(run_nn, context));
    const struct bench_product product = {.m = m, .n = n, .k = k, .a = x.a, .b = x.b, .c = x.c};
    bench_rivals("matmul_nn", BENCH_NN, shape, &product, 1);
    bench_print("matmul_nt", shape, "hecate", flops, 0, bench_seconds(run_nt, context));
    bench_rivals("matmul_nt", BENCH_NT, shape, &product, 1);
    bench_print("matmul_tn", shape, "hecate", flops, 0, bench_seconds(run_tn, context));
    bench_rivals("matmul_tn", BENCH_TN, shape, &product, 1);
    bench_free_all();
}

void bench_products(void) {
    static const int64_t widths[][2] = {{256, 512}, {512, 1024}, {768, 1536}, {1024, 4096}};
    static const int64_t rows[] = {16, 64, 256, 1024, 4096};
    for (int w = 0; w < 4; w++) {
        for (int r = 0; r < 5; r++) bench_matmul(rows[r], widths[w][0], widths[w][1]);
    }
}

enum { experts = 64, rows_max = 64 };

struct grouped {
    struct hk_grouped_dims dims;
    const float *chunk[experts];
    float *grad[experts];
    int32_t first[experts + 1];
    float *a, *c;
};

static void run_grouped_nn(void *context) {
    const struct grouped *x = context;
    hk_grouped_nn_f32(x->c, x->a, x->chunk, 0, x->first, x->dims, HK_STORE, NULL);
}

static void run_grouped_nt(void *context) {
    const struct grouped *x = context;
    hk_grouped_nt_f32(x->a, x->c, x->chunk, 0, x->first, x->dims, HK_STORE, NULL);
}

static void run_grouped_tn(void *context) {
    const struct grouped *x = context;
    hk_grouped_tn_f32(x->grad, 0, x->a, x->c, x->first, x->dims, HK_ADD);
}

// 64 experts: their weights do not fit into any cache, as in training.
static void bench_experts(int64_t rows, int64_t k, int64_t n) {
    struct grouped x = {.dims = {.experts = experts, .n = n, .k = k}};
    struct bench_product products[experts];
    x.a = bench_floats(experts * rows * k);
    x.c = bench_floats(experts * rows * n);
    for (int64_t e = 0; e < experts; e++) {
        x.chunk[e] = bench_floats(hk_panels_size(k, n));
        x.grad[e] = bench_floats(hk_panels_size(k, n));
        x.first[e + 1] = (int32_t)((e + 1) * rows);
        products[e] = (struct bench_product){
            .m = rows,
            .n = n,
            .k = k,
            .a = x.a + e * rows * k,
            .b = x.grad[e], // Random numbers in either layout.
            .c = x.c + e * rows * n,
        };
    }
    const double flops = 2.0 * experts * (double)rows * (double)n * (double)k;
    char shape[64];
    snprintf(shape, sizeof shape, "64 x M=%d K=%d N=%d", (int)rows, (int)k, (int)n);
    bench_print("grouped_nn", shape, "hecate", flops, 0, bench_seconds(run_grouped_nn, &x));
    bench_rivals("grouped_nn", BENCH_NN, shape, products, experts);
    bench_print("grouped_nt", shape, "hecate", flops, 0, bench_seconds(run_grouped_nt, &x));
    bench_rivals("grouped_nt", BENCH_NT, shape, products, experts);
    bench_print("grouped_tn", shape, "hecate", flops, 0, bench_seconds(run_grouped_tn, &x));
    bench_rivals("grouped_tn", BENCH_TN, shape, products, experts);
    bench_free_all();
}

void bench_grouped(void) {
    static const int64_t rows[] = {4, 16, rows_max, 256};
    for (int r = 0; r < 4; r++) bench_experts(rows[r], 512, 1024);
}
