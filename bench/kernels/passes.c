// Kernels bound by memory: bytes that must move, in GB/s.
#include "bench/kernels/bench.h"

#include <stdio.h>

#include "kernels/adamw/adamw.h"
#include "kernels/cross_entropy/cross_entropy.h"
#include "kernels/rmsnorm/rmsnorm.h"
#include "kernels/router/router.h"
#include "kernels/sum_squares/sum_squares.h"

enum { parameters = 1 << 24, tokens = 4096, width = 512, vocabulary = 32000, experts = 64 };

struct passes {
    float *a, *b, *c, *d, *row;
    int32_t *ids, *loads;
};

static void run_adamw(void *context) {
    const struct passes *x = context;
    const struct hk_adamw_rule rule = {1e-4, 0.9, 0.95, 1e-8, 0.1, 1, 0.1, 0.05, NULL};
    hk_adamw_f32(x->a, x->b, x->c, x->d, parameters, &rule);
}

static void run_sum_squares(void *context) {
    const struct passes *x = context;
    volatile double sum = hk_sum_squares_f32(x->a, parameters);
    (void)sum;
}

static void run_rmsnorm(void *context) {
    const struct passes *x = context;
    hk_rmsnorm_f32(x->b, x->row, x->a, x->c, tokens, width, 1e-6);
}

static void run_rmsnorm_grad(void *context) {
    const struct passes *x = context;
    hk_rmsnorm_grad_f32(x->b, x->d, x->a, x->c, x->row, x->c, tokens, width, HK_STORE, HK_ADD);
}

static void run_cross_entropy(void *context) {
    const struct passes *x = context;
    const float scale = 1.0f / tokens;
    float loss;
    hk_cross_entropy_f32(&loss, x->row, x->a, x->ids, NULL, &scale, 512, vocabulary);
}

static void run_cross_entropy_grad(void *context) {
    const struct passes *x = context;
    const float scale = 1.0f / tokens, one = 1;
    hk_cross_entropy_grad_f32(x->b, &one, x->a, x->row, x->ids, NULL, &scale, 512, vocabulary);
}

static void run_router(void *context) {
    const struct passes *x = context;
    const struct hk_router_rule rule = {.experts = experts,
                                        .topk = 8,
                                        .groups = 1,
                                        .topk_groups = 1,
                                        .score = HK_SOFTMAX,
                                        .weight = HK_RENORMALIZED,
                                        .scale = 1};
    hk_router_f32(x->b, x->c, x->ids, x->loads, x->a, NULL, NULL, NULL, tokens, rule);
}

void bench_add_passes(void) {
    struct passes x = {
        .a = bench_floats(parameters),
        .b = bench_floats(parameters),
        .c = bench_floats(parameters),
        .d = bench_floats(parameters),
        .row = bench_floats(tokens),
        .ids = (int32_t *)bench_floats(tokens * 8),
        .loads = (int32_t *)bench_floats(experts),
    };
    for (int i = 0; i < tokens * 8; i++) x.ids[i] = i % vocabulary;
    for (int i = 0; i < parameters; i++) x.d[i] = x.d[i] * x.d[i];

    const double word = sizeof(float), rows = (double)tokens * width * word;
    const double logits = 512.0 * vocabulary * word, scores = 2.0 * tokens * experts * word;
    const struct {
        struct bench_what what;
        void (*run)(void *context);
    } kernels[] = {
        {{"adamw", "16.8 M", "hecate", 0, 8 * word * parameters}, run_adamw},
        {{"sum_squares", "16.8 M", "hecate", 0, word * parameters}, run_sum_squares},
        {{"rmsnorm", "4096 x 512", "hecate", 0, 2 * rows}, run_rmsnorm},
        {{"rmsnorm_grad", "4096 x 512", "hecate", 0, 3 * rows}, run_rmsnorm_grad},
        {{"cross_entropy", "512 x 32000", "hecate", 0, logits}, run_cross_entropy},
        {{"cross_entropy_grad", "512 x 32000", "hecate", 0, 2 * logits}, run_cross_entropy_grad},
        {{"router", "4096 x 64, top 8", "hecate", 0, scores}, run_router},
    };
    struct passes *kept = bench_copy(&x, sizeof x);
    for (int i = 0; i < 7; i++) bench_add(kernels[i].what, kernels[i].run, kept, NULL);
}
