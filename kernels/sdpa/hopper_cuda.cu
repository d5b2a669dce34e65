// Attention of bf16 by a warpgroup's GEMMs (wgmma, sm_90a), for rows of up to 128 values. Scores and all sums are float; the weights, and
// their gradients, are rounded to bf16 as they become operands. Each result is one sum in a fixed order, as in bf16_cuda.cu: dq is one kernel,
// dk and dv are another.
//
// A block has 128 queries of a head or, for dk and dv, 128 keys of a group; where they have the most to do, they come first. Blocks
// beside each other are of heads that share keys and values, which then come from the second cache.
#include <math.h>
#include <string.h>

#include "kernels/sdpa/hopper.h"
#include "kernels/sdpa/warpgroup_device.h"

namespace attention {

namespace {

// Rows of a tile: 128 keys forward, whose GEMMs then read shared memory half as often; 64 where registers hold more sums.
constexpr int FORWARD_TILE = 128, GRADIENT_TILE = 64;

struct inputs {
    const bf16 *q, *k, *v;
    hk_sdpa_dims d;
    int each; // Heads of a group.
};

struct gradients {
    inputs of;
    const bf16 *dout;
    const float *lse, *delta;
};

#if HKC_WARPGROUPS

constexpr float LOG2E = 1.44269504f, LN2 = 0.693147181f;

HKC_DEVICE int lane_number() {
    return (int)threadIdx.x % 32;
}

// The first of the thread's two rows among its block's; the other one is the eighth below.
HKC_DEVICE int own_row() {
    return (int)threadIdx.x / 32 * 16 + lane_number() / 4;
}

// A row's largest score and the thread's part of the sum of weights.
struct softmax {
    float most[2] = {-INFINITY, -INFINITY}, total[2] = {0, 0};

    // Turns scores into weights of a scale in units of a factor of 2; returns what earlier sums shrink by.
    template <int N> HKC_DEVICE float fold(float (&score)[N], int half, float scale) {
        float peak = -INFINITY;
#pragma unroll
        for (int j = 0; j < N / 4; j++) {
            peak = fmaxf(peak, fmaxf(score[j * 4 + half * 2], score[j * 4 + half * 2 + 1]));
        }
        const float now = fmaxf(most[half], quad_max(peak));
        const float base = now == -INFINITY ? 0 : now * scale;
        const float shrink = power_of_2(most[half] * scale - base);
        float part = 0;
#pragma unroll
        for (int j = 0; j < N / 4; j++) {
#pragma unroll
            for (int e = half * 2; e < half * 2 + 2; e++) {
                score[j * 4 + e] = power_of_2(score[j * 4 + e] * scale - base);
                part += score[j * 4 + e];
            }
        }
        total[half] = total[half] * shrink + part;
        most[half] = now;
        return shrink;
    }
};

// The slope of a score with a cap, of which `bent` is the tanh.
HKC_DEVICE float slope_of(float bent, bool capped) {
    return capped ? 1 - bent * bent : 1;
}

// Hides the scores of keys that a query does not see.
template <int N, class M>
HKC_DEVICE void hide(float (&score)[N], const M &mask, int64_t query, int64_t key) {
#pragma unroll
    for (int i = 0; i < N; i++) {
        const int64_t of = key + i / 4 * 8 + lane_number() % 4 * 2 + i % 2;
        if (!mask.sees(query + i / 2 % 2 * 8, of)) score[i] = -INFINITY;
    }
}

template <int P, bool SPECIAL>
HKC_DEVICE void attend_block(unsigned char *memory, bf16 *out, float *lse, const float *sinks,
                             const inputs &x) {
    constexpr int T = FORWARD_TILE, TILE_BYTES = P * T * LINE_BYTES;
    const hk_sdpa_dims &d = x.d;
    const int64_t head = blockIdx.x, batch = blockIdx.y, g = head / x.each;
    const int64_t first = (int64_t)(gridDim.z - 1 - blockIdx.z) * OWN;
    const int64_t own = first + warpgroup() * GROUP_ROWS, last = own + GROUP_ROWS - 1;
    const mask<SPECIAL> mask = mask_of<SPECIAL>(d, batch);
    const float scale = factor_of<SPECIAL>(d) * LOG2E;
    unsigned char *tiles = memory + P * OWN * LINE_BYTES;
    const copier<T, P> keys(rows_of(x.k, d, batch, g, d.groups, d.width));
    const copier<T, P> values(rows_of(x.v, d, batch, g, d.groups, d.vwidth));
    softmax softmax;
    float sum[32 * P] = {};

    const int64_t from = mask.keys_from(first) / T * T, to = mask.keys_to(first + OWN - 1);
    auto load = [&](int i, unsigned char *tile) {
        if (i == 0) {
            copier<OWN, P>(rows_of(x.q, d, batch, head, d.heads, d.width)).copy(memory, first);
        }
        keys.copy(tile, from + (int64_t)i * T);
        values.copy(tile + TILE_BYTES, from + (int64_t)i * T);
    };
    auto compute = [&](int i, const unsigned char *tile) {
        const int64_t key = from + (int64_t)i * T;
        if (!mask.sees_some(own, last, key, key + T - 1)) return;
        float score[T / 2];
        begin_scores<P, T>(score, memory, tile);
        wgmma_wait<0>();
        wgmma_sums(score);
        if (SPECIAL && d.cap > 0) {
#pragma unroll
            for (int i = 0; i < T / 2; i++) score[i] = hk_tanh_f32(score[i] * bend_of(d));
        }
        if (!mask.sees_all(own, last, key, key + T - 1)) hide(score, mask, first + own_row(), key);
        const float shrink[2] = {softmax.fold(score, 0, scale), softmax.fold(score, 1, scale)};
        if (__any_sync(~0u, shrink[0] != 1 || shrink[1] != 1)) {
#pragma unroll
            for (int i = 0; i < 32 * P; i++) sum[i] *= shrink[i / 2 % 2];
        }
        const group_weights<T> weights(score);
        begin_weighted<P, T>(sum, weights, tile + TILE_BYTES);
        wgmma_wait<0>();
    };
    each_group_tile(tiles, 2 * TILE_BYTES, (int)((to - from + T - 1) / T), load, compute);

#pragma unroll
    for (int half = 0; half < 2; half++) {
        const int64_t query = first + own_row() + half * 8;
        float total = quad_sum(softmax.total[half]), most = softmax.most[half] * scale * LN2;
        if (query >= d.positions) continue;
        const float share = (sinks ? add_sink(most, total, sinks[head]) : 1) / total;
        if (lane_number() % 4 == 0) {
            lse[(batch * d.heads + head) * d.positions + query] = most + logf(total);
        }
        store_group_row(out + ((batch * d.positions + query) * d.heads + head) * d.vwidth, d.vwidth,
                        sum, half, share);
    }
}

template <int P, bool SPECIAL>
HKC_DEVICE void grad_queries_block(unsigned char *memory, bf16 *dq, const gradients &x) {
    constexpr int T = GRADIENT_TILE, TILE_BYTES = P * T * LINE_BYTES, N = T / 2;
    const hk_sdpa_dims &d = x.of.d;
    const int64_t head = blockIdx.x, batch = blockIdx.y, g = head / x.of.each;
    const int64_t first = (int64_t)(gridDim.z - 1 - blockIdx.z) * OWN;
    const int64_t own = first + warpgroup() * GROUP_ROWS, last = own + GROUP_ROWS - 1;
    const mask<SPECIAL> mask = mask_of<SPECIAL>(d, batch);
    const float scale = factor_of<SPECIAL>(d) * LOG2E;
    const bool capped = SPECIAL && d.cap > 0;
    const float bend = capped ? bend_of(d) : 0;
    unsigned char *douts = memory + P * OWN * LINE_BYTES, *tiles = douts + P * OWN * LINE_BYTES;
    const copier<T, P> keys(rows_of(x.of.k, d, batch, g, d.groups, d.width));
    const copier<T, P> values(rows_of(x.of.v, d, batch, g, d.groups, d.vwidth));
    float sum[32 * P] = {}, lse[2], delta[2];
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const int64_t query = first + own_row() + half * 8;
        const int64_t at = (batch * d.heads + head) * d.positions + query;
        lse[half] = query < d.positions ? x.lse[at] * LOG2E : 0;
        delta[half] = query < d.positions ? x.delta[at] : 0;
    }

    const int64_t from = mask.keys_from(first) / T * T, to = mask.keys_to(first + OWN - 1);
    auto load = [&](int i, unsigned char *tile) {
        if (i == 0) {
            copier<OWN, P>(rows_of(x.of.q, d, batch, head, d.heads, d.width)).copy(memory, first);
            copier<OWN, P>(rows_of(x.dout, d, batch, head, d.heads, d.vwidth)).copy(douts, first);
        }
        keys.copy(tile, from + (int64_t)i * T);
        values.copy(tile + TILE_BYTES, from + (int64_t)i * T);
    };
    auto compute = [&](int i, const unsigned char *tile) {
        const int64_t key = from + (int64_t)i * T;
        if (!mask.sees_some(own, last, key, key + T - 1)) return;
        float score[N], dweight[N];
        begin_scores<P, T>(score, memory, tile);
        if (SPECIAL) wgmma_wait<0>(); // Their registers do not let two GEMMs go on at once.
        begin_scores<P, T>(dweight, douts, tile + TILE_BYTES);
        wgmma_wait<SPECIAL ? 0 : 1>();
        wgmma_sums(score);
        if (SPECIAL) wgmma_sums(dweight);
        const bool all = mask.sees_all(own, last, key, key + T - 1);
#pragma unroll
        for (int i = 0; i < N; i++) {
            const bool seen = all || mask.sees(first + own_row() + i / 2 % 2 * 8,
                                               key + lane_number() % 4 * 2 + i / 4 * 8 + i % 2);
            const float bent = capped ? hk_tanh_f32(score[i] * bend) : score[i];
            score[i] = seen ? power_of_2(bent * scale - lse[i / 2 % 2]) : 0;
            if (SPECIAL) score[i] *= slope_of(bent, capped) * (dweight[i] - delta[i / 2 % 2]);
        }
        if (!SPECIAL) {
            wgmma_wait<0>();
            wgmma_sums(dweight);
#pragma unroll
            for (int i = 0; i < N; i++) score[i] *= dweight[i] - delta[i / 2 % 2];
        }
        const group_weights<T> slopes(score);
        begin_weighted<P, T>(sum, slopes, tile);
        wgmma_wait<0>();
    };
    each_group_tile(tiles, 2 * TILE_BYTES, (int)((to - from + T - 1) / T), load, compute);

#pragma unroll
    for (int half = 0; half < 2; half++) {
        const int64_t query = first + own_row() + half * 8;
        if (query >= d.positions) continue;
        store_group_row(dq + ((batch * d.positions + query) * d.heads + head) * d.width, d.width,
                        sum, half, (float)d.scale);
    }
}

// Copies lse and delta of a tile's queries of a head, whose numbers begin at `rows`; zeros behind the last one.
template <int T>
HKC_DEVICE void copy_statistics(unsigned char *to, const gradients &x, int64_t rows,
                                int64_t query) {
    if (threadIdx.x >= 2 * T) return;
    const float *numbers = threadIdx.x < T ? x.lse : x.delta;
    const int64_t at = query + threadIdx.x % T;
    const bool here = at < x.of.d.positions;
    copy4(shared_address(to) + threadIdx.x * 4, numbers + (here ? rows + at : 0), here ? 4 : 0);
}

// Stores the thread's part of the rows of two keys, `key` and the eighth behind it.
template <int P>
HKC_DEVICE void store_key_grads(bf16 *dk, bf16 *dv, const float (&dkey)[32 * P],
                                const float (&dvalue)[32 * P], const hk_sdpa_dims &d, int64_t batch,
                                int64_t g, int64_t key) {
#pragma unroll
    for (int half = 0; half < 2; half++, key += 8) {
        if (key >= d.positions) continue;
        const int64_t row = (batch * d.positions + key) * d.groups + g;
        store_group_row(dk + row * d.width, d.width, dkey, half, (float)d.scale);
        store_group_row(dv + row * d.vwidth, d.vwidth, dvalue, half, 1);
    }
}

// Tiles are of queries, head after head of the group; behind a tile's rows are their lse and delta. Rows of the scores are keys.
template <int P, bool SPECIAL>
HKC_DEVICE void grad_keys_block(unsigned char *memory, bf16 *dk, bf16 *dv, const gradients &x) {
    constexpr int T = GRADIENT_TILE, TILE_BYTES = P * T * LINE_BYTES, N = T / 2;
    const hk_sdpa_dims &d = x.of.d;
    const int64_t g = blockIdx.x, batch = blockIdx.y, first = (int64_t)blockIdx.z * OWN;
    const int64_t own = first + warpgroup() * GROUP_ROWS, last = own + GROUP_ROWS - 1;
    const mask<SPECIAL> mask = mask_of<SPECIAL>(d, batch);
    const float scale = factor_of<SPECIAL>(d) * LOG2E;
    const bool capped = SPECIAL && d.cap > 0;
    const float bend = capped ? bend_of(d) : 0;
    unsigned char *values = memory + P * OWN * LINE_BYTES, *tiles = values + P * OWN * LINE_BYTES;
    float dkey[32 * P] = {}, dvalue[32 * P] = {};

    const int64_t from = mask.queries_from(first) / T * T, to = mask.queries_to(first + OWN - 1);
    const int of_head = (int)((to - from + T - 1) / T);
    auto load = [&](int i, unsigned char *tile) {
        const int64_t h = g * x.of.each + i / of_head, query = from + (int64_t)(i % of_head) * T;
        if (i == 0) {
            copier<OWN, P>(rows_of(x.of.k, d, batch, g, d.groups, d.width)).copy(memory, first);
            copier<OWN, P>(rows_of(x.of.v, d, batch, g, d.groups, d.vwidth)).copy(values, first);
        }
        copier<T, P>(rows_of(x.of.q, d, batch, h, d.heads, d.width)).copy(tile, query);
        copier<T, P>(rows_of(x.dout, d, batch, h, d.heads, d.vwidth))
            .copy(tile + TILE_BYTES, query);
        copy_statistics<T>(tile + 2 * TILE_BYTES, x, (batch * d.heads + h) * d.positions, query);
    };
    auto compute = [&](int i, const unsigned char *tile) {
        const int64_t query = from + (int64_t)(i % of_head) * T;
        if (!mask.sees_some(query, query + T - 1, own, last)) return;
        const bool all = query + T <= d.positions && mask.sees_all(query, query + T - 1, own, last);
        const float *lse = (const float *)(tile + 2 * TILE_BYTES) + lane_number() % 4 * 2;
        float score[N], dweight[N];
        begin_scores<P, T>(score, memory, tile);
        if (SPECIAL) wgmma_wait<0>(); // Their registers do not let two GEMMs go on at once.
        begin_scores<P, T>(dweight, values, tile + TILE_BYTES);
        wgmma_wait<SPECIAL ? 0 : 1>();
        wgmma_sums(score);
        if (SPECIAL) wgmma_sums(dweight);
#pragma unroll
        for (int i = 0; i < N; i++) {
            const int column = i / 4 * 8 + i % 2;
            const bool seen = all || mask.sees(query + lane_number() % 4 * 2 + column,
                                               first + own_row() + i / 2 % 2 * 8);
            const float bent = capped ? hk_tanh_f32(score[i] * bend) : score[i];
            score[i] = seen ? power_of_2(bent * scale - lse[column] * LOG2E) : 0;
            if (SPECIAL)
                dweight[i] = score[i] * slope_of(bent, capped) * (dweight[i] - lse[T + column]);
        }
        const group_weights<T> weights(score);
        begin_weighted<P, T>(dvalue, weights, tile + TILE_BYTES);
        if (!SPECIAL) {
            wgmma_wait<1>();
            wgmma_sums(dweight);
#pragma unroll
            for (int i = 0; i < N; i++)
                dweight[i] = score[i] * (dweight[i] - lse[T + i / 4 * 8 + i % 2]);
        }
        const group_weights<T> slopes(dweight);
        begin_weighted<P, T>(dkey, slopes, tile);
        wgmma_wait<0>();
    };
    each_group_tile(tiles, 2 * TILE_BYTES + 2 * T * (int)sizeof(float) + 512, of_head * x.of.each,
                    load, compute);

    store_key_grads<P>(dk, dv, dkey, dvalue, d, batch, g, first + own_row());
}

#endif

template <int P, bool SPECIAL>
__global__ void __launch_bounds__(GROUP_THREADS, 1)
    attend_group(bf16 *out, float *lse, const float *sinks, inputs x) {
    HKC_SHARED(memory);
#if HKC_WARPGROUPS
    attend_block<P, SPECIAL>(memory, out, lse, sinks, x);
#endif
}

template <int P, bool SPECIAL>
__global__ void __launch_bounds__(GROUP_THREADS, 1) grad_queries_group(bf16 *dq, gradients x) {
    HKC_SHARED(memory);
#if HKC_WARPGROUPS
    grad_queries_block<P, SPECIAL>(memory, dq, x);
#endif
}

template <int P, bool SPECIAL>
__global__ void __launch_bounds__(GROUP_THREADS, 1)
    grad_keys_group(bf16 *dk, bf16 *dv, gradients x) {
    HKC_SHARED(memory);
#if HKC_WARPGROUPS
    grad_keys_block<P, SPECIAL>(memory, dk, dv, x);
#endif
}

dim3 grid_of(const hk_sdpa_dims &d, int64_t heads) {
    return dim3((unsigned)heads, (unsigned)d.batch, (unsigned)((d.positions + OWN - 1) / OWN));
}

// Shared memory for own matrices, and two tiles of two matrices of `rows` rows and `numbers` floats each.
size_t shared_bytes(int panels, int own, int rows, int numbers) {
    return (size_t)panels * LINE_BYTES * (size_t)(own * OWN + 4 * rows) + (size_t)numbers * 8;
}

template <int P>
void launch_forward(hkc_lane *lane, bf16 *out, float *lse, const float *sinks, const inputs &x) {
    hkc_launch_named(lane, "attend_group",
                     is_special(x.d) ? attend_group<P, true> : attend_group<P, false>,
                     grid_of(x.d, x.d.heads), GROUP_THREADS, shared_bytes(P, 1, FORWARD_TILE, 0),
                     out, lse, sinks, x);
}

template <int P>
void launch_backward(hkc_lane *lane, bf16 *dq, bf16 *dk, bf16 *dv, const gradients &x) {
    const hk_sdpa_dims &d = x.of.d;
    hkc_launch_named(lane, "grad_queries_group",
                     is_special(d) ? grad_queries_group<P, true> : grad_queries_group<P, false>,
                     grid_of(d, d.heads), GROUP_THREADS, shared_bytes(P, 2, GRADIENT_TILE, 0), dq,
                     x);
    hkc_launch_named(lane, "grad_keys_group",
                     is_special(d) ? grad_keys_group<P, true> : grad_keys_group<P, false>,
                     grid_of(d, d.groups), GROUP_THREADS,
                     shared_bytes(P, 2, GRADIENT_TILE, 2 * GRADIENT_TILE + 128), dk, dv, x);
}

bool is_narrow(const hk_sdpa_dims &d) {
    return d.width <= PANEL && d.vwidth <= PANEL;
}

} // namespace

bool by_warpgroups(const hkc_lane *lane, const hk_sdpa_dims &d) {
    enum { GRID_MAX = 65535 };
    return lane->warpgroups && d.width <= 2 * PANEL && d.vwidth <= 2 * PANEL && d.scale > 0 &&
           d.batch <= GRID_MAX && (d.positions + OWN - 1) / OWN <= GRID_MAX;
}

void forward_by_warpgroups(hkc_lane *lane, bf16 *out, float *lse, const bf16 *q, const bf16 *k,
                           const bf16 *v, const float *sinks, const hk_sdpa_dims &d) {
    const inputs x = {q, k, v, d, (int)(d.heads / d.groups)};
    if (is_narrow(d)) return launch_forward<1>(lane, out, lse, sinks, x);
    launch_forward<2>(lane, out, lse, sinks, x);
}

void backward_by_warpgroups(hkc_lane *lane, bf16 *dq, bf16 *dk, bf16 *dv, const bf16 *dout,
                            const bf16 *q, const bf16 *k, const bf16 *v, const float *lse,
                            const float *delta, const hk_sdpa_dims &d) {
    const gradients x = {{q, k, v, d, (int)(d.heads / d.groups)}, dout, lse, delta};
    if (is_narrow(d)) return launch_backward<1>(lane, dq, dk, dv, x);
    launch_backward<2>(lane, dq, dk, dv, x);
}

} // namespace attention
