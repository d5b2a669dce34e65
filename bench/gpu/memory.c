// Kernels that are bound by memory, in the shapes of a model of 2,048 with 128 experts: shares of the copy bandwidth.
#include <stdio.h>

#include "bench/gpu/gpu_bench.h"

// The arrays of the cases.
struct arrays {
    int64_t tokens, width, picks, vocabulary, params;
    hk_bf16 *x, *y, *dy, *rows, *logits, *rounded;
    float *gain, *rstd, *dgain, *param, *grad, *mean, *variance, *lse, *loss, *scale, *table;
    int32_t *pair, *slot, *ids, *targets;
    double *sum;
};

static void rmsnorm(struct hkc_lane *lane, const void *arguments) {
    const struct arrays *x = arguments;
    hkc_rmsnorm_bf16(lane, x->y, x->rstd, x->x, x->gain, x->tokens, x->width, 1e-5);
}

static void rmsnorm_grad(struct hkc_lane *lane, const void *arguments) {
    const struct arrays *x = arguments;
    hkc_rmsnorm_grad_bf16(lane, x->y, x->dgain, x->dy, x->x, x->rstd, x->gain, x->tokens, x->width,
                          HK_STORE, HK_ADD);
}

static void permute(struct hkc_lane *lane, const void *arguments) {
    const struct arrays *x = arguments;
    hkc_permute_bf16(lane, x->rows, x->x, x->pair, x->tokens, x->picks, x->width);
}

static void combine(struct hkc_lane *lane, const void *arguments) {
    const struct arrays *x = arguments;
    hkc_combine_bf16(lane, x->y, x->rows, x->slot, x->tokens, x->picks, x->width, HK_STORE);
}

static void gather(struct hkc_lane *lane, const void *arguments) {
    const struct arrays *x = arguments;
    hkc_gather_bf16(lane, x->y, x->table, x->ids, x->tokens, x->width);
}

static void gather_grad(struct hkc_lane *lane, const void *arguments) {
    const struct arrays *x = arguments;
    hkc_gather_grad_bf16(lane, x->table, x->dy, x->ids, x->tokens, x->vocabulary, x->width, HK_ADD);
}

static void cross_entropy(struct hkc_lane *lane, const void *arguments) {
    const struct arrays *x = arguments;
    hkc_cross_entropy_bf16(lane, x->loss, x->lse, x->logits, x->targets, NULL, x->scale, x->tokens,
                           x->vocabulary);
}

static void cross_entropy_grad(struct hkc_lane *lane, const void *arguments) {
    const struct arrays *x = arguments;
    hkc_cross_entropy_grad_bf16(lane, x->logits, x->scale, x->logits, x->lse, x->targets, NULL,
                                x->scale, x->tokens, x->vocabulary);
}

static void adamw(struct hkc_lane *lane, const void *arguments) {
    const struct arrays *x = arguments;
    const struct hk_adamw_rule rule = {.lr = 1e-4,
                                       .beta1 = 0.9,
                                       .beta2 = 0.95,
                                       .eps = 1e-8,
                                       .grad_scale = 1,
                                       .correction1 = 0.1,
                                       .correction2 = 0.05};
    hkc_adamw_rounded_f32(lane, x->param, x->rounded, x->grad, x->mean, x->variance, x->params,
                          HK_ROWS, &rule);
}

static void sum_squares(struct hkc_lane *lane, const void *arguments) {
    const struct arrays *x = arguments;
    hkc_sum_squares_f32(lane, x->sum, x->param, x->params, 1);
}

static struct arrays take(const struct gpu_bench *bench) {
    struct arrays x = {.tokens = gpu_size(bench, 8192, 24),
                       .width = gpu_size(bench, 2048, 64),
                       .picks = gpu_size(bench, 8, 2),
                       .vocabulary = gpu_size(bench, 151936, 100),
                       .params = gpu_size(bench, 256 << 20, 1024)};
    const int64_t values = x.tokens * x.width, rows = x.tokens * x.picks;
    x.x = gpu_values(values), x.y = gpu_room((size_t)values * 2), x.dy = gpu_values(values);
    x.rows = gpu_values(values * x.picks);
    x.logits = gpu_values(x.tokens * x.vocabulary);
    x.gain = gpu_floats(x.width), x.dgain = gpu_room((size_t)x.width * 4);
    x.rstd = gpu_floats(x.tokens), x.lse = gpu_floats(x.tokens);
    x.param = gpu_floats(x.params), x.grad = gpu_floats(x.params), x.mean = gpu_floats(x.params);
    x.variance = gpu_room((size_t)x.params * 4), x.rounded = gpu_room((size_t)x.params * 2);
    x.table = gpu_floats(x.vocabulary * x.width);
    x.loss = gpu_room(4), x.scale = gpu_floats(1), x.sum = gpu_room(8);
    x.ids = gpu_draw(x.tokens, (int32_t)x.vocabulary);
    x.targets = gpu_draw(x.tokens, (int32_t)x.vocabulary);
    x.pair = gpu_draw(rows, (int32_t)rows), x.slot = gpu_draw(rows, (int32_t)rows);
    return x;
}

void gpu_bench_memory(const struct gpu_bench *bench) {
    const struct arrays x = take(bench);
    const double values = 2 * (double)(x.tokens * x.width), rows = values * (double)x.picks;
    const double logits = 2 * (double)(x.tokens * x.vocabulary), params = (double)x.params;
    const struct gpu_case all[] = {
        {.name = "rmsnorm_bf16", .launch = rmsnorm, .bytes = 2 * values},
        {.name = "rmsnorm_grad_bf16", .launch = rmsnorm_grad, .bytes = 3 * values},
        {.name = "permute_bf16", .launch = permute, .bytes = 2 * rows},
        {.name = "combine_bf16", .launch = combine, .bytes = rows + values},
        {.name = "gather_bf16", .launch = gather, .bytes = 3 * values},
        {.name = "gather_grad_bf16", .launch = gather_grad, .bytes = 5 * values},
        {.name = "cross_entropy_bf16", .launch = cross_entropy, .bytes = logits},
        {.name = "cross_entropy_grad_bf16", .launch = cross_entropy_grad, .bytes = 2 * logits},
        {.name = "adamw_rounded_f32", .launch = adamw, .bytes = 34 * params},
        {.name = "sum_squares_f32", .launch = sum_squares, .bytes = 4 * params},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct gpu_case of = all[i];
        of.arguments = &x;
        snprintf(of.sizes, sizeof of.sizes, "%.1f MiB", of.bytes / (1 << 20));
        gpu_time(bench, &of);
    }
    gpu_free_all();
}
