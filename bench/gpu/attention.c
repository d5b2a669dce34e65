// Attention, as a share of the peak of GEMMs, and routers, whose time counts.
#include <stdio.h>

#include "bench/gpu/gpu_bench.h"

struct attention {
    hk_bf16 *q, *k, *v, *out, *dout, *dq, *dk, *dv;
    float *lse;
    struct hk_sdpa_dims dims;
};

static void forward(struct hkc_lane *lane, const void *arguments) {
    const struct attention *x = arguments;
    hkc_sdpa_bf16(lane, x->out, x->lse, x->q, x->k, x->v, NULL, x->dims);
}

static void backward(struct hkc_lane *lane, const void *arguments) {
    const struct attention *x = arguments;
    hkc_sdpa_grad_bf16(lane, x->dq, x->dk, x->dv, x->dout, x->q, x->k, x->v, x->out, x->lse,
                       x->dims);
}

static void time_attention(const struct gpu_bench *bench) {
    if (!gpu_wants(bench, "sdpa_bf16") && !gpu_wants(bench, "sdpa_grad_bf16")) return;
    const int64_t batch = gpu_size(bench, 2, 1), positions = gpu_size(bench, 4096, 40);
    const int64_t heads = gpu_size(bench, 32, 2), groups = gpu_size(bench, 4, 1),
                  width = gpu_size(bench, 128, 16);
    const int64_t q = batch * positions * heads * width, k = batch * positions * groups * width;
    const struct attention x = {.q = gpu_values(q),
                                .k = gpu_values(k),
                                .v = gpu_values(k),
                                .out = gpu_room((size_t)q * 2),
                                .dout = gpu_values(q),
                                .dq = gpu_room((size_t)q * 2),
                                .dk = gpu_room((size_t)k * 2),
                                .dv = gpu_room((size_t)k * 2),
                                .lse = gpu_room((size_t)(batch * heads * positions) * 4),
                                .dims = {.batch = batch,
                                         .positions = positions,
                                         .heads = heads,
                                         .groups = groups,
                                         .width = width,
                                         .vwidth = width,
                                         .causal = true,
                                         .scale = 0.088}};
    // Half of the pairs of a causal attention; two GEMMs forward, five backward.
    const double flops = 2 * (double)(batch * heads * width) * (double)(positions * positions);
    struct gpu_case of = {.arguments = &x, .name = "sdpa_bf16", .launch = forward, .flops = flops};
    snprintf(of.sizes, sizeof of.sizes, "%lld x %lld, %lld heads of %lld", (long long)batch,
             (long long)positions, (long long)heads, (long long)width);
    gpu_time(bench, &of);
    gpu_seconds(bench, forward,
                &x); // The gradient takes its results, also where it is timed alone.
    of.name = "sdpa_grad_bf16", of.launch = backward, of.flops = 2.5 * flops;
    gpu_time(bench, &of);
    gpu_free_all();
}

struct router {
    float *scores, *weights, *logits;
    int32_t *ids, *loads, *first, *pair, *slot;
    int64_t tokens;
    struct hk_router_rule rule;
};

static void choose(struct hkc_lane *lane, const void *arguments) {
    const struct router *x = arguments;
    hkc_router_f32(lane, x->scores, x->weights, x->ids, x->loads, x->logits, NULL, NULL, NULL,
                   x->tokens, x->rule);
}

static void route(struct hkc_lane *lane, const void *arguments) {
    const struct router *x = arguments;
    hkc_route(lane, x->first, x->pair, x->slot, x->ids, x->tokens, x->rule.topk, x->rule.experts);
}

static void time_router(const struct gpu_bench *bench, int64_t tokens, int64_t experts,
                        int64_t picks) {
    const size_t scores = (size_t)(tokens * experts) * 4, pairs = (size_t)(tokens * picks) * 4;
    const struct router x = {.scores = gpu_room(scores),
                             .weights = gpu_room(pairs),
                             .logits = gpu_floats(tokens * experts),
                             .ids = gpu_draw(tokens * picks, (int32_t)experts),
                             .loads = gpu_room((size_t)experts * 4),
                             .first = gpu_room((size_t)(experts + 1) * 4),
                             .pair = gpu_room(pairs),
                             .slot = gpu_room(pairs),
                             .tokens = tokens,
                             .rule = {.experts = experts,
                                      .topk = picks,
                                      .score = HK_SOFTMAX,
                                      .weight = HK_RENORMALIZED,
                                      .scale = 1}};
    struct gpu_case of = {
        .arguments = &x, .name = "route", .launch = route, .bytes = 4 * (double)pairs};
    snprintf(of.sizes, sizeof of.sizes, "%lld tokens, %lld of %lld experts", (long long)tokens,
             (long long)picks, (long long)experts);
    gpu_time(bench, &of);
    of.name = "router_f32", of.launch = choose, of.bytes = 2 * (double)scores + 2 * (double)pairs;
    gpu_time(bench, &of);
    gpu_free_all();
}

void gpu_bench_attention(const struct gpu_bench *bench) {
    time_attention(bench);
    if (bench->tiny) {
        time_router(bench, 20, 8, 2);
        return;
    }
    time_router(bench, 256, 128, 8);
    time_router(bench, 8192, 128, 8);
}
