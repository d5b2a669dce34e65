// The plain GEMMs by shape, rows and precision: in full next to rivals, or in short as one table.
#include "bench/kernels/bench.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

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

static struct operands *make(int64_t m, int64_t k, int64_t n) {
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
    return bench_copy(&x, sizeof x);
}

static double flops_of(const struct operands *x) {
    return 2.0 * (double)x->dims.m * (double)x->dims.n * (double)x->dims.k;
}

static const char *const names[precisions][forms] = {
    {"matmul_nn", "matmul_nt", "matmul_tn"},
    {"matmul_nn_bf16", "matmul_nt_bf16", "matmul_tn_bf16"},
};

// The number of the first of the forms; `rivals`: theirs, too.
static int add(int64_t m, int64_t k, int64_t n, bool bf16, bool rivals) {
    struct operands *x = make(m, k, n);
    const struct bench_product product = {.m = m, .n = n, .k = k, .a = x->a, .b = x->b, .c = x->c};
    int first = 0;
    char shape[64];
    snprintf(shape, sizeof shape, "M=%d K=%d N=%d", (int)m, (int)k, (int)n);
    for (int f = 0; f < forms; f++) {
        const char *name = names[bf16][f];
        const struct bench_what what = {name, shape, "hecate", flops_of(x), 0};
        const int number = bench_add(what, run_of[bf16][f], x, NULL);
        if (f == 0) first = number;
        if (!rivals) continue;
        if (!bf16) bench_rivals(name, (enum bench_form)f, shape, &product, 1);
        if (bf16 && f == BENCH_NN) bench_rivals_bf16(name, shape, m, n, k, 1);
    }
    return first;
}

static void add_all(bool bf16) {
    static const int64_t rows[] = {16, 64, 256, 1024, 4096};
    for (int w = 0; w < widths; w++) {
        for (int r = 0; r < 5; r++) add(rows[r], width[w][0], width[w][1], bf16, true);
    }
}

void bench_add_products(void) {
    add_all(false);
}

void bench_add_products_bf16(void) {
    add_all(true);
}

enum { table_rows = 3 };
static const int64_t row[table_rows] = {16, 64, 384};
static int number_of[widths][table_rows][precisions];

void bench_add_table(void) {
    for (int w = 0; w < widths; w++) {
        for (int r = 0; r < table_rows; r++) {
            for (int i = 0; i < precisions; i++) {
                number_of[w][r][i] = add(row[r], width[w][0], width[w][1], i == 1, false);
            }
        }
    }
}

static void print_shares(enum bench_runs runs) {
    printf("|    K x N    |   M | NN fp32 | NT fp32 | TN fp32 | NN bf16 | NT bf16 | TN bf16 |\n");
    printf("|-------------|----:|--------:|--------:|--------:|--------:|--------:|--------:|\n");
    for (int w = 0; w < widths; w++) {
        for (int r = 0; r < table_rows; r++) {
            printf("| %4d x %-4d | %3d |", (int)width[w][0], (int)width[w][1], (int)row[r]);
            for (int i = 0; i < precisions * forms; i++) {
                const int number = number_of[w][r][i / forms] + i % forms;
                const bool shared = runs == BENCH_FASTEST && bench_alone(number) < bench_alone_min;
                printf("   %5.1f%c|", 100 * bench_share(number, runs), shared ? '*' : ' ');
            }
            printf("\n");
        }
    }
}

void bench_print_table(void) {
    printf("\nShares of the peak in %%, the fastest tenth of the runs on cores of their own "
           "(*: of all, for these were fewer than %d)\n\n",
           bench_alone_min);
    print_shares(BENCH_FASTEST);
    printf("\nThe median of all runs\n\n");
    print_shares(BENCH_MEDIAN);
}
