// CUDA twin of router: a warp for each token, which keeps the token's scores in shared memory.
//
// Bytes moved: 8 a token and expert (logits in, scores out) and 8 a choice. For 128 experts and 8 choices about 600
// instructions a warp come to that, most of them in the choice: 25 to 40 % of the copy bandwidth for many tokens; for
// a few hundred of them the time is two launches and the latency of one pass.
#include "kernels/router/router.h"

#include "kernels/cuda/device.h"
#include "kernels/cuda/warps.h"
#include "kernels/scalar.h"

namespace {

constexpr int WARP = 32, WARPS_MAX = 4;

// A whole number above 0 that orders values as they are; NaN as the lowest. 0 is left for what is taken.
HKC_DEVICE uint32_t key_of(float value) {
    const uint32_t bits = (uint32_t)__float_as_int(value == 0 ? 0.0f : value); // Same for -0.
    if (isnan(value)) return ~(uint32_t)__float_as_int(-INFINITY);
    return bits >> 31 ? ~bits : bits | 0x80000000u;
}

// The index of the largest key, the first of equals, which becomes 0: taken. For all lanes. A lane reads
// and writes the keys of its own indices alone.
HKC_DEVICE int take_best(uint32_t *keys, int count, int lane) {
    uint32_t key = 0;
    int best = count;
    for (int i = lane; i < count; i += WARP) {
        if (keys[i] > key) {
            key = keys[i];
            best = i;
        }
    }
    const uint32_t most = __reduce_max_sync(~0u, key);
    const int first = __reduce_min_sync(~0u, key == most ? best : count);
    if (first % WARP == lane) keys[first] = 0;
    return first;
}

// The shared memory of a warp, for its token.
struct token {
    float *scores;  // [experts]
    uint32_t *keys; // [experts] of scores and bias.
    int32_t *ids;   // [topk]
    uint32_t *groups;
};

// 4-byte words of it.
HKC_HOST_DEVICE int words_of(const struct hk_router_rule &rule) {
    return (int)(2 * rule.experts + rule.topk + (rule.groups > 1 ? rule.groups : 0));
}

HKC_DEVICE struct token token_in(uint32_t *words, const struct hk_router_rule &rule) {
    uint32_t *rest = words + 2 * rule.experts;
    return {(float *)words, words + rule.experts, (int32_t *)rest, rest + rule.topk};
}

// The functions of scores.def.
typedef float real, wide;
#define HK_REAL(name) hk_##name##_f32
#define WIDE(function) wide_##function
#define wide_exp hk_exp_f32
#define wide_fabs fabsf
#define wide_sqrt sqrtf
#define wide_log1p log1pf
#define wide_expm1 expm1f
#define HK_SCORE(ID, word, value, slope)                                                           \
    HKC_DEVICE real word##_value(real l) value HKC_DEVICE real word##_slope(real s) slope
#define HK_SCORE_OF_ALL(...)
#include "kernels/router/scores.def"
#undef HK_SCORE
#undef HK_SCORE_OF_ALL

// Each lane scores its own experts.
HKC_DEVICE void score_row(float *to, const float *logits, const struct hk_router_rule &rule,
                          int lane) {
    const int experts = (int)rule.experts;
    switch (rule.score) {
    case HK_SOFTMAX:
        break;
#define HK_SCORE(ID, word, ...)                                                                    \
    case HK_##ID:                                                                                  \
        for (int e = lane; e < experts; e += WARP) to[e] = word##_value(logits[e]);                \
        return;
#define HK_SCORE_OF_ALL(...)
#include "kernels/router/scores.def"
#undef HK_SCORE
    }
    float peak = -INFINITY, sum = 0;
    for (int e = lane; e < experts; e += WARP) {
        const float logit = logits[e];
        to[e] = logit;
        peak = logit > peak ? logit : peak;
    }
    peak = warp_max(peak);
    for (int e = lane; e < experts; e += WARP) {
        to[e] = hk_exp_f32(to[e] - peak);
        sum += to[e];
    }
    sum = warp_sum(sum);
    for (int e = lane; e < experts; e += WARP) to[e] /= sum;
}

// Groups' keys by `count` experts each: lanes side by side share a group where groups are few.
HKC_DEVICE void score_groups(uint32_t *keys, const float *scores, const float *bias,
                             const struct hk_router_rule &rule, int lane) {
    const int groups = (int)rule.groups, count = (int)rule.experts / groups;
    const bool two = rule.group_score == HK_GROUP_TWO_BEST ||
                     (rule.group_score == HK_GROUP_AS_USUAL && rule.score != HK_SOFTMAX);
    int share = WARP;
    while (share > 1 && share * groups > WARP) share /= 2;
    for (int from = 0; from < groups; from += WARP / share) {
        const int group = from + lane / share;
        float best = -INFINITY, second = -INFINITY;
        for (int i = lane % share; i < count && group < groups; i += share) {
            const int e = group * count + i;
            const float value = scores[e] + (bias ? bias[e] : 0);
            second = value > best ? best : value > second ? value : second;
            best = value > best ? value : best;
        }
        for (int step = share / 2; step > 0; step /= 2) {
            const float other = __shfl_xor_sync(~0u, best, step);
            const float next = __shfl_xor_sync(~0u, second, step);
            const float lower = other > best ? best : other;
            best = other > best ? other : best;
            second = next > second ? next : second;
            second = lower > second ? lower : second;
        }
        if (lane % share == 0 && group < groups) {
            keys[group] = key_of(two && count > 1 ? best + second : best);
        }
    }
}

// Takes the experts outside of the best groups away.
HKC_DEVICE void keep_groups(const struct token &own, const float *bias,
                            const struct hk_router_rule &rule, int lane) {
    const int count = (int)(rule.experts / rule.groups);
    score_groups(own.groups, own.scores, bias, rule, lane);
    __syncwarp();
    for (int i = 0; i < rule.topk_groups; i++) take_best(own.groups, (int)rule.groups, lane);
    __syncwarp();
    for (int e = lane; e < rule.experts; e += WARP) {
        if (own.groups[e / count] != 0) own.keys[e] = 0;
    }
}

HKC_DEVICE void choose(const struct token &own, const float *bias,
                       const struct hk_router_rule &rule, int lane) {
    for (int e = lane; e < rule.experts; e += WARP) {
        own.keys[e] = key_of(own.scores[e] + (bias ? bias[e] : 0));
    }
    if (rule.groups > 1) keep_groups(own, bias, rule, lane);
    for (int j = 0; j < rule.topk; j++) {
        const int best = take_best(own.keys, (int)rule.experts, lane);
        if (j % WARP == lane) own.ids[j] = best;
    }
}

HKC_DEVICE void weigh(float *weights, const struct token &own, const float *logits,
                      const struct hk_router_rule &rule, int lane) {
    const bool softmax = rule.weight == HK_SOFTMAX_OF_TOPK;
    const int topk = (int)rule.topk;
    float peak = -INFINITY,
          sum = 0; // Chosen by score plus bias: the first need not be the largest.
    for (int j = lane; j < topk && softmax; j += WARP) {
        const float logit = logits[own.ids[j]];
        peak = logit > peak ? logit : peak;
    }
    peak = warp_max(peak);
    for (int j = lane; j < topk; j += WARP) {
        const int id = own.ids[j];
        sum += softmax ? hk_exp_f32(logits[id] - peak) : own.scores[id];
    }
    sum = warp_sum(sum);
    float divisor = NAN;
    switch (rule.weight) {
    case HK_SCORES:
        divisor = 1;
        break;
    case HK_RENORMALIZED:
        divisor = sum + 1e-20f;
        break;
    case HK_SOFTMAX_OF_TOPK:
        divisor = sum;
        break;
    }
    for (int j = lane; j < topk; j += WARP) {
        const int id = own.ids[j];
        const float raw = softmax ? hk_exp_f32(logits[id] - peak) : own.scores[id];
        weights[j] = raw / divisor * (float)rule.scale;
    }
}

// Loads are counted in shared memory, block by block, and then added to those of the other blocks.
__global__ void __launch_bounds__(WARPS_MAX *WARP)
    router(float *scores, float *weights, int32_t *ids, int32_t *loads, const float *logits,
           const float *bias, const int32_t *forced, int32_t *record, int64_t tokens,
           struct hk_router_rule rule) {
    HKC_SHARED(memory);
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, warps = blockDim.x / WARP;
    int32_t *count = (int32_t *)memory;
    const struct token own =
        token_in((uint32_t *)count + rule.experts + warp * words_of(rule), rule);
    for (int e = threadIdx.x; e < rule.experts; e += blockDim.x) count[e] = 0;
    __syncthreads();
    for (int64_t t = (int64_t)blockIdx.x * warps + warp; t < tokens;
         t += (int64_t)gridDim.x * warps) {
        const float *row = logits + t * rule.experts;
        score_row(own.scores, row, rule, lane);
        __syncwarp();
        if (!forced) choose(own, bias, rule, lane);
        for (int j = lane; j < rule.topk; j += WARP) {
            if (forced) own.ids[j] = forced[t * rule.topk + j];
            ids[t * rule.topk + j] = own.ids[j];
            if (record) record[t * rule.topk + j] = own.ids[j];
            atomicAdd(count + own.ids[j], 1);
        }
        weigh(weights + t * rule.topk, own, row, rule, lane);
        for (int e = lane; e < rule.experts; e += WARP) {
            scores[t * rule.experts + e] = own.scores[e];
        }
        __syncwarp();
    }
    __syncthreads();
    for (int e = threadIdx.x; e < rule.experts; e += blockDim.x) {
        if (count[e] != 0) atomicAdd(loads + e, count[e]);
    }
}

__global__ void clear(int32_t *loads, int experts) {
    const int e = blockIdx.x * blockDim.x + threadIdx.x;
    if (e < experts) loads[e] = 0;
}

// Adds the gradient of one token's weights to ds, by score. Shares are divided before they are multiplied with: the share of
// an expert that is alone is 1, and its gradient 0, not what rounding leaves.
HKC_DEVICE void grad_of_weights(float *ds, const float *dw, const float *scores, const int32_t *ids,
                                const struct hk_router_rule &rule, int lane) {
    float sum = 0, along = 0;
    for (int j = lane; j < rule.topk; j += WARP) sum += scores[ids[j]];
    sum = warp_sum(sum) + 1e-20f;
    for (int j = lane; j < rule.topk; j += WARP) along += dw[j] * (scores[ids[j]] / sum);
    along = warp_sum(along);
    for (int j = lane; j < rule.topk; j += WARP) {
        const float d = rule.weight == HK_SCORES ? dw[j] : (dw[j] - along) / sum;
        ds[ids[j]] += (float)rule.scale * d;
    }
}

// From the gradient by score, in d, to the gradient by logit, in place.
HKC_DEVICE void grad_of_scores(float *d, const float *scores, const struct hk_router_rule &rule,
                               int lane) {
    switch (rule.score) {
    case HK_SOFTMAX:
        break;
#define HK_SCORE(ID, word, ...)                                                                    \
    case HK_##ID:                                                                                  \
        for (int e = lane; e < rule.experts; e += WARP) d[e] *= word##_slope(scores[e]);           \
        return;
#include "kernels/router/scores.def"
#undef HK_SCORE
    }
    float along = 0;
    for (int e = lane; e < rule.experts; e += WARP) along += d[e] * scores[e];
    along = warp_sum(along);
    for (int e = lane; e < rule.experts; e += WARP) d[e] = scores[e] * (d[e] - along);
}

// HK_SOFTMAX_OF_TOPK: the weights depend on the logits directly.
HKC_DEVICE void add_grad_of_softmax(float *d, const float *dw, const float *w, const int32_t *ids,
                                    const struct hk_router_rule &rule, int lane) {
    const float scale = (float)rule.scale;
    float along = 0;
    for (int j = lane; j < rule.topk; j += WARP) along += dw[j] * (w[j] / scale);
    along = warp_sum(along);
    for (int j = lane; j < rule.topk; j += WARP) d[ids[j]] += w[j] * (dw[j] - along);
}

// Bytes moved: 8 a token and expert, 12 with dscores. Scores are read twice, the second time from the first-level cache.
// Expected: 70 % of the copy bandwidth.
__global__ void __launch_bounds__(WARPS_MAX *WARP)
    router_grad(float *dlogits, const float *dweights, const float *dscores, const float *scores,
                const float *weights, const int32_t *ids, int64_t tokens,
                struct hk_router_rule rule) {
    HKC_SHARED(memory);
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    const int64_t t = (int64_t)blockIdx.x * (blockDim.x / WARP) + warp;
    if (t >= tokens) return;
    float *d = (float *)memory + warp * rule.experts;
    const int64_t row = t * rule.experts, choice = t * rule.topk;
    const bool softmax = rule.weight == HK_SOFTMAX_OF_TOPK;
    for (int e = lane; e < rule.experts; e += WARP) d[e] = dscores ? dscores[row + e] : 0;
    __syncwarp();
    if (!softmax) {
        grad_of_weights(d, dweights + choice, scores + row, ids + choice, rule, lane);
        __syncwarp();
    }
    if (!softmax || dscores) grad_of_scores(d, scores + row, rule, lane);
    if (softmax && rule.scale != 0) {
        __syncwarp();
        add_grad_of_softmax(d, dweights + choice, weights + choice, ids + choice, rule, lane);
    }
    __syncwarp();
    for (int e = lane; e < rule.experts; e += WARP) dlogits[row + e] = d[e];
}

void check(const struct hk_router_rule &rule) {
    assert(rule.experts <= HK_EXPERTS_MAX);
    assert(rule.topk >= 0 && rule.topk <= rule.experts);
}

} // namespace

extern "C" void hkc_router_f32(struct hkc_lane *lane, float *scores, float *weights, int32_t *ids,
                               int32_t *loads, const float *logits, const float *bias,
                               const int32_t *forced, int32_t *record, int64_t tokens,
                               struct hk_router_rule rule) {
    constexpr int clear_block = 128, blocks_of_multiprocessor = 8;
    check(rule);
    const int64_t count_bytes = 4 * rule.experts, token_bytes = 4 * words_of(rule);
    const int warps = hkc_warps(token_bytes, count_bytes, WARPS_MAX);
    const int64_t all = (tokens + warps - 1) / warps;
    const int64_t most = (int64_t)blocks_of_multiprocessor * lane->multiprocessors;
    const size_t shared = (size_t)(count_bytes + warps * token_bytes);
    hkc_launch(lane, clear, (unsigned)((rule.experts + clear_block - 1) / clear_block), clear_block,
               0, loads, (int)rule.experts);
    hkc_launch(lane, router, (unsigned)(all < most ? all : most), warps * WARP, shared, scores,
               weights, ids, loads, logits, bias, forced, record, tokens, rule);
}

extern "C" void hkc_router_grad_f32(struct hkc_lane *lane, float *dlogits, const float *dweights,
                                    const float *dscores, const float *scores, const float *weights,
                                    const int32_t *ids, int64_t tokens,
                                    struct hk_router_rule rule) {
    check(rule);
    const int64_t bytes = 4 * rule.experts;
    const int warps = hkc_warps(bytes, 0, WARPS_MAX);
    hkc_launch(lane, router_grad, (unsigned)((tokens + warps - 1) / warps), warps * WARP,
               (size_t)(warps * bytes), dlogits, dweights, dscores, scores, weights, ids, tokens,
               rule);
}
