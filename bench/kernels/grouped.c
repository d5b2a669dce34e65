// The GEMMs by expert, float and bf16. 64 experts: their weights do not fit into any cache, as in
// training.
#include "bench/kernels/bench.h"

#include <stdbool.h>
#include <stdio.h>

#include "kernels/grouped/grouped.h"

enum { experts = 64, forms = 3 };

// Rows first[e] .. first[e+1]-1 are those of expert e.
struct grouped {
    struct hk_grouped_dims dims;
    const float *chunk[experts];
    const hk_bf16 *weights[experts];
    float *grad[experts];
    int32_t first[experts + 1];
    float *a, *c;
};

static void run_nn(void *context) {
    const struct grouped *x = context;
    hk_grouped_nn_f32(x->c, x->a, x->chunk, 0, x->first, x->dims, HK_STORE, NULL);
}

static void run_nt(void *context) {
    const struct grouped *x = context;
    hk_grouped_nt_f32(x->a, x->c, x->chunk, 0, x->first, x->dims, HK_STORE, NULL);
}

static void run_tn(void *context) {
    const struct grouped *x = context;
    hk_grouped_tn_f32(x->grad, 0, x->a, x->c, x->first, x->dims, HK_ADD);
}

static void run_nn_bf16(void *context) {
    const struct grouped *x = context;
    hk_grouped_nn_bf16(x->c, x->a, x->weights, 0, x->first, x->dims, HK_STORE, NULL);
}

static void run_nt_bf16(void *context) {
    const struct grouped *x = context;
    hk_grouped_nt_bf16(x->a, x->c, x->weights, 0, x->first, x->dims, HK_STORE, NULL);
}

static void run_tn_bf16(void *context) {
    const struct grouped *x = context;
    hk_grouped_tn_bf16(x->grad, 0, x->a, x->c, x->first, x->dims, HK_ADD);
}

static void (*const run_of[2][forms])(void *context) = {
    {run_nn, run_nt, run_tn},
    {run_nn_bf16, run_nt_bf16, run_tn_bf16},
};

static struct grouped *make(struct bench_product *products, int64_t rows, int64_t k, int64_t n,
                            bool bf16) {
    const struct grouped empty = {.dims = {.experts = experts, .n = n, .k = k}};
    struct grouped *x = bench_copy(&empty, sizeof empty);
    const int64_t size = hk_panels_size_bf16(k, n);
    x->a = bench_floats(experts * rows * k);
    x->c = bench_floats(experts * rows * n);
    for (int64_t e = 0; e < experts; e++) {
        x->grad[e] = bench_floats(size);
        if (bf16) {
            hk_bf16 *weights = (hk_bf16 *)bench_floats(size / 2);
            hk_round_panels_bf16(weights, x->grad[e], k, n);
            x->weights[e] = weights;
        } else {
            x->chunk[e] = bench_floats(size);
        }
        x->first[e + 1] = (int32_t)((e + 1) * rows);
        products[e] = (struct bench_product){
            .m = rows,
            .n = n,
            .k = k,
            .a = x->a + e * rows * k,
            .b = x->grad[e], // Random numbers in either layout.
            .c = x->c + e * rows * n,
        };
    }
    return x;
}

static void add(int64_t rows, int64_t k, int64_t n, bool bf16) {
    static const char *const names[2][forms] = {
        {"grouped_nn", "grouped_nt", "grouped_tn"},
        {"grouped_nn_bf16", "grouped_nt_bf16", "grouped_tn_bf16"},
    };
    struct bench_product products[experts];
    struct grouped *x = make(products, rows, k, n, bf16);
    const double flops = 2.0 * experts * (double)rows * (double)n * (double)k;
    char shape[64];
    snprintf(shape, sizeof shape, "64 x M=%d K=%d N=%d", (int)rows, (int)k, (int)n);
    for (int f = 0; f < forms; f++) {
        const char *name = names[bf16][f];
        bench_add((struct bench_what){name, shape, "hecate", flops, 0}, run_of[bf16][f], x, NULL);
        if (!bf16) bench_rivals(name, (enum bench_form)f, shape, products, experts);
        if (bf16 && f == BENCH_NN) bench_rivals_bf16(name, shape, rows, n, k, experts);
    }
}

static void add_all(bool bf16) {
    static const int64_t rows[] = {4, 16, 64, 256};
    for (int r = 0; r < 4; r++) add(rows[r], 512, 1024, bf16);
}

void bench_add_grouped(void) {
    add_all(false);
}

void bench_add_grouped_bf16(void) {
    add_all(true);
}
