// The products by shape, rows and precision, in one table: shares of the multiply-add peak. The peak
// is the highest of those measured between the shapes, for a processor's clock changes with time.
#include "bench/kernels/bench.h"

#include <stddef.h>
#include <stdio.h>

#include "kernels/cpu/peak.h"
#include "kernels/matmul/matmul.h"

enum { widths = 4, rows = 3, forms = 3, precisions = 2 };

static const int64_t width[widths][2] = {{256, 512}, {512, 1024}, {768, 1536}, {1024, 4096}};
static const int64_t row[rows] = {16, 64, 384};

struct operands {
    struct hk_matmul_dims dims;
    float *a, *c, *panels;
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

// GF/s of one shape.
static void measure(double rate[precisions][forms], int64_t m, int64_t k, int64_t n) {
    struct operands x = {
        .dims = {.m = m, .n = n, .k = k},
        .a = bench_floats(m * k),
        .c = bench_floats(m * n),
        .panels = bench_floats(hk_panels_size_bf16(k, n)),
    };
    x.weights = (hk_bf16 *)bench_floats(hk_panels_size_bf16(k, n) / 2);
    hk_round_panels_bf16(x.weights, x.panels, k, n);
    const double flops = 2.0 * (double)m * (double)n * (double)k;
    for (int i = 0; i < precisions; i++) {
        for (int f = 0; f < forms; f++) {
            rate[i][f] = flops / bench_seconds(run_of[i][f], &x) / 1e9;
        }
    }
    bench_free_all();
}

static double larger(double a, double b) {
    return a > b ? a : b;
}

void bench_table(void) {
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
