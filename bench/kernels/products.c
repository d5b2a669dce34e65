// The plain products by shape, rows and precision: in full next to rivals, or in short as one table.
#include "bench/kernels/bench.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "kernels/cpu/peak.h"
#include "kernels/matmul/matmul.h"

enum { widths = 4, forms = 3, precisions = 2 };

static const int64_t width[widths][2] = {{256, 512}, {512, 1024}, {768, 1536}, {1024, 4096}};

struct operands {
    struct hk_matmul_dims dims;
    float *a, *b, *c, *panels;
    hk_bf16 *weights;
};

static void run_nn(void *context) {
    const struct operands *x = context;
    hk_matmul_nn_f32(x->c, x->a, x->panels, HK_PANELS, x->dims, HK_STORE, NULL);
}

static void run_nt(void *context) {
    const struct operands *x = context;
    hk_matmul_nt_f32(x->a, x->c, x->panels, HK_PANELS, x->dims, HK_STORE, NULL);
}

static void run_tn(void *context) {
    const struct operands *x = context;
    hk_matmul_tn_f32(x->panels, x->a, x->c, HK_PANELS, x->dims, HK_ADD);
}

static void run_nn_bf16(void *context) {
    const struct operands *x = context;
    hk_matmul_nn_bf16(x->c, x->a, x->weights, HK_PANELS, x->dims, HK_STORE, NULL);
}

static void run_nt_bf16(void *context) {
    const struct operands *x = context;
    hk_matmul_nt_bf16(x->a, x->c, x->weights, HK_PANELS, x->dims, HK_STORE, NULL);
}

static void run_tn_bf16(void *context) {
    const struct operands *x = context;
    hk_matmul_tn_bf16(x->panels, x->a, x->c, HK_PANELS, x->dims, HK_ADD);
}

static void (*const run_of[precisions][forms])(void *context) = {
    {run_nn, run_nt, run_tn},
    {run_nn_bf16, run_nt_bf16, run_tn_bf16},
};

static struct operands make(int64_t m, int64_t k, int64_t n) {
    const int64_t size = hk_panels_size_bf16(k, n);
    const struct operands x = {
        .dims = {.m = m, .n = n, .k = k},
        .a = bench_floats(m * k),
        .b = bench_floats(k * n),
        .c = bench_floats(m * n),
        .panels = bench_floats(size),
        .weights = (hk_bf16 *)bench_floats(size / 2),
    };
    hk_panels_pack_f32(x.panels, x.b, k, n);
    hk_round_panels_bf16(x.weights, x.panels, k, n);
    return x;
}

static double flops_of(const struct operands *x) {
    return 2.0 * (double)x->dims.m * (double)x->dims.n * (double)x->dims.k;
}

static void bench_matmul(int64_t m, int64_t k, int64_t n, bool bf16) {
    static const char *const names[precisions][forms] = {
        {"matmul_nn", "matmul_nt", "matmul_tn"},
        {"matmul_nn_bf16", "matmul_nt_bf16", "matmul_tn_bf16"},
    };
    struct operands x = make(m, k, n);
    const struct bench_product product = {.m = m, .n = n, .k = k, .a = x.a, .b = x.b, .c = x.c};
    char shape[64];
    snprintf(shape, sizeof shape, "M=%d K=%d N=%d", (int)m, (int)k, (int)n);
    for (int f = 0; f < forms; f++) {
        const char *name = names[bf16][f];
        bench_print(name, shape, "hecate", flops_of(&x), 0, bench_seconds(run_of[bf16][f], &x));
        if (!bf16) bench_rivals(name, (enum bench_form)f, shape, &product, 1);
        if (bf16 && f == BENCH_NN) bench_rivals_bf16(name, shape, m, n, k, 1);
    }
    bench_free_all();
}

static void bench_all(bool bf16) {
    static const int64_t rows[] = {16, 64, 256, 1024, 4096};
    for (int w = 0; w < widths; w++) {
        for (int r = 0; r < 5; r++) bench_matmul(rows[r], width[w][0], width[w][1], bf16);
    }
}

void bench_products(void) {
    bench_all(false);
}

void bench_products_bf16(void) {
    bench_all(true);
}

// GF/s of one shape.
static void measure(double rate[precisions][forms], int64_t m, int64_t k, int64_t n) {
    struct operands x = make(m, k, n);
    for (int i = 0; i < precisions; i++) {
        for (int f = 0; f < forms; f++) {
            rate[i][f] = flops_of(&x) / bench_seconds(run_of[i][f], &x) / 1e9;
        }
    }
    bench_free_all();
}

static double larger(double a, double b) {
    return a > b ? a : b;
}

// Shares of the multiply-add peak: of the highest of those measured between the shapes, for a processor's
// clock changes with time.
void bench_table(void) {
    enum { rows = 3 };
    static const int64_t row[rows] = {16, 64, 384};
    double rate[widths][rows][precisions][forms], peak[precisions] = {0};
    for (int w = 0; w < widths; w++) {
        for (int r = 0; r < rows; r++) {
            peak[0] = larger(peak[0], hk_peak_f32());
            peak[1] = larger(peak[1], hk_peak_bf16());
            measure(rate[w][r], row[r], width[w][0], width[w][1]);
        }
    }
    printf("\nShares of the peak, %.1f GF/s, of bf16 %.1f GF/s, in %%\n\n", peak[0], peak[1]);
    printf("|    K x N    |   M | NN fp32 | NT fp32 | TN fp32 | NN bf16 | NT bf16 | TN bf16 |\n");
    printf("|-------------|----:|--------:|--------:|--------:|--------:|--------:|--------:|\n");
    for (int w = 0; w < widths; w++) {
        for (int r = 0; r < rows; r++) {
            printf("| %4d x %-4d | %3d |", (int)width[w][0], (int)width[w][1], (int)row[r]);
            for (int i = 0; i < precisions * forms; i++) {
                const double share = rate[w][r][i / forms][i % forms] / peak[i / forms];
                printf("   %5.1f |", 100 * share);
            }
            printf("\n");
        }
    }
    printf("\n");
    fflush(stdout);
}
