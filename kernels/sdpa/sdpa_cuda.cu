// CUDA twin of sdpa for floats: a block of threads has 64 queries of a head, or, for the gradients of keys and values,
// 64 keys of a group, whose queries it takes head after head. dq, dk and dv are three kernels: each sums in one fixed
// order, and recomputes the weights. The bound: 4 numbers read from shared memory for 8 multiply-adds, which allows
// about a third of the peak.
//
// Differences from the contract, of both types: blocks have 32 keys; batch * heads * positions is at most
// HKC_SCRATCH / 4 for gradients, widths are at most 384.
#include "kernels/sdpa/sdpa.h"

#include <math.h>

#include "kernels/sdpa/tile_device.h"

namespace {

using namespace attention;

HKC_DEVICE void bend_scores(float (&score)[ROWS][COLUMNS], float factor) {
    for (int i = 0; i < ROWS; i++) {
        for (int j = 0; j < COLUMNS; j++) score[i][j] = hk_tanh_f32(score[i][j] * factor);
    }
}

// A least number of blocks, or special ones spill registers on Hopper.
template <int C, bool SPECIAL>
__global__ void __launch_bounds__(THREADS, SPECIAL ? 1 : 0)
    attend(float *out, float *lse, const float *q, const float *k, const float *v,
           const float *sinks, hk_sdpa_dims d) {
    HKC_SHARED(memory);
    shared_tile &tile = *(shared_tile *)memory;
    float *wide = (float *)(memory + sizeof(shared_tile));
    const int64_t first = (int64_t)blockIdx.x * OWN, h = blockIdx.y, b = blockIdx.z;
    const int64_t g = h / (d.heads / d.groups);
    const head_rows<float> queries = rows_of(q, d, b, h, d.heads, d.width);
    const head_rows<float> keys = rows_of(k, d, b, g, d.groups, d.width);
    const head_rows<float> values = rows_of(v, d, b, g, d.groups, d.vwidth);
    const mask<SPECIAL> mask = mask_of<SPECIAL>(d, b);
    float most[ROWS], total[ROWS], sum[ROWS][C];
    for (int i = 0; i < ROWS; i++) {
        most[i] = -INFINITY, total[i] = 0;
        for (int c = 0; c < C; c++) sum[i][c] = 0;
    }
    const int64_t end = mask.keys_to(first + OWN - 1);
    for (int64_t key = mask.keys_from(first) / OTHER * OTHER; key < end; key += OTHER) {
        float weight[ROWS][COLUMNS];
        multiply_rows(weight, tile, queries, first, keys, key);
        if (SPECIAL && d.cap > 0) bend_scores(weight, bend_of(d));
        for (int i = 0; i < ROWS; i++) {
            const int64_t query = first + ty() + SIDE * i;
            bool seen[COLUMNS];
            float peak = -INFINITY;
            for (int j = 0; j < COLUMNS; j++) {
                seen[j] = mask.sees(query, key + tx() + SIDE * j);
                weight[i][j] *= factor_of<SPECIAL>(d);
                if (seen[j]) peak = fmaxf(peak, weight[i][j]);
            }
            const float now = fmaxf(most[i], side_max(peak));
            const float shrink = most[i] == -INFINITY ? 0 : expf(most[i] - now);
            float part = 0;
            for (int j = 0; j < COLUMNS; j++) {
                weight[i][j] = seen[j] ? expf(weight[i][j] - now) : 0;
                part += weight[i][j];
            }
            total[i] = total[i] * shrink + side_sum(part);
            most[i] = now;
            for (int c = 0; c < C; c++) sum[i][c] *= shrink;
        }
        add_weighted(sum, tile, wide, weight, values, key);
    }
    for (int i = 0; i < ROWS; i++) {
        const int64_t query = first + ty() + SIDE * i;
        if (query >= d.positions) continue;
        const float share = (sinks ? add_sink(most[i], total[i], sinks[h]) : 1) / total[i];
        if (tx() == 0) lse[(b * d.heads + h) * d.positions + query] = most[i] + logf(total[i]);
        float *to = out + ((b * d.positions + query) * d.heads + h) * d.vwidth;
        for (int c = 0; c < C; c++) {
            if (tx() + SIDE * c < d.vwidth) to[tx() + SIDE * c] = sum[i][c] * share;
        }
    }
}

struct gradient {
    const float *dout, *q, *k, *v;
    const float *lse, *delta;
    float scale, factor; // The second one, of scores of special kernels: see factor_of.
    hk_sdpa_dims d;
    int64_t each; // Heads of a group. (Divided by the host: on the device it would be a call.)
};

enum kind { OF_QUERIES, OF_KEYS, OF_VALUES };

// The weight of an element of the scores for values, or its gradient for queries and keys. Where scores have a
// cap, `score` is the tanh of one.
template <kind KIND, bool SPECIAL>
HKC_DEVICE float weigh(const gradient &x, const mask<SPECIAL> &mask, int64_t row, int64_t query,
                       int64_t key, float score, float dweight) {
    if (!mask.sees(query, key)) return 0;
    const float weight = expf(score * (SPECIAL ? x.factor : x.scale) - x.lse[row + query]);
    if (KIND == OF_VALUES) return weight;
    const float change = weight * (dweight - x.delta[row + query]) * x.scale;
    return SPECIAL && x.d.cap > 0 ? change * (1 - score * score) : change;
}

// Adds to `sum` what head h of batch b gives to the block's rows.
template <kind KIND, int C, bool SPECIAL>
HKC_DEVICE void add_head(float (&sum)[ROWS][C], const gradient &x, int64_t first, int64_t b,
                         int64_t g, int64_t h) {
    HKC_SHARED(memory);
    shared_tile &tile = *(shared_tile *)memory;
    float *wide = (float *)(memory + sizeof(shared_tile));
    const hk_sdpa_dims &d = x.d;
    const int64_t row = (b * d.heads + h) * d.positions;
    const bool queries = KIND == OF_QUERIES;
    const head_rows<float> q = rows_of(x.q, d, b, h, d.heads, d.width);
    const head_rows<float> k = rows_of(x.k, d, b, g, d.groups, d.width);
    const head_rows<float> v = rows_of(x.v, d, b, g, d.groups, d.vwidth);
    const head_rows<float> dout = rows_of(x.dout, d, b, h, d.heads, d.vwidth);
    const mask<SPECIAL> mask = mask_of<SPECIAL>(d, b);
    const int64_t last = first + OWN - 1;
    const int64_t from = queries ? mask.keys_from(first) : mask.queries_from(first);
    const int64_t to = queries ? mask.keys_to(last) : mask.queries_to(last);
#pragma unroll 1
    for (int64_t at = from / OTHER * OTHER; at < to; at += OTHER) {
        float weight[ROWS][COLUMNS], dweight[ROWS][COLUMNS] = {};
        multiply_rows(weight, tile, queries ? q : k, first, queries ? k : q, at);
        if (KIND != OF_VALUES)
            multiply_rows(dweight, tile, queries ? dout : v, first, queries ? v : dout, at);
        if (SPECIAL && d.cap > 0) bend_scores(weight, bend_of(d));
        for (int i = 0; i < ROWS; i++) {
            const int64_t own = first + ty() + SIDE * i;
            for (int j = 0; j < COLUMNS; j++) {
                const int64_t other = at + tx() + SIDE * j;
                weight[i][j] =
                    weigh<KIND, SPECIAL>(x, mask, row, queries ? own : other, queries ? other : own,
                                         weight[i][j], dweight[i][j]);
            }
        }
        add_weighted(sum, tile, wide, weight,
                     KIND == OF_QUERIES ? k
                     : KIND == OF_KEYS  ? q
                                        : dout,
                     at);
    }
}

// Narrow ones have two blocks of a processor.
template <kind KIND, int C, bool SPECIAL>
__global__ void __launch_bounds__(THREADS, C == 4 ? 2 : 1) attend_grad(float *to, gradient x) {
    const hk_sdpa_dims &d = x.d;
    const int64_t first = (int64_t)blockIdx.x * OWN, of = blockIdx.y, b = blockIdx.z;
    const int64_t heads = KIND == OF_QUERIES ? d.heads : d.groups;
    const int64_t width = KIND == OF_VALUES ? d.vwidth : d.width;
    float sum[ROWS][C];
    for (int i = 0; i < ROWS; i++) {
        for (int c = 0; c < C; c++) sum[i][c] = 0;
    }
    if (KIND == OF_QUERIES) {
        add_head<KIND, C, SPECIAL>(sum, x, first, b, of / x.each, of);
    } else {
#pragma unroll 1 // Or registers spill.
        for (int64_t h = of * x.each; h < (of + 1) * x.each; h++)
            add_head<KIND, C, SPECIAL>(sum, x, first, b, of, h);
    }
    for (int i = 0; i < ROWS; i++) {
        const int64_t row = first + ty() + SIDE * i;
        if (row >= d.positions) continue;
        for (int c = 0; c < C; c++) {
            if (tx() + SIDE * c < width)
                to[((b * d.positions + row) * heads + of) * width + tx() + SIDE * c] = sum[i][c];
        }
    }
}

template <int C> size_t shared_bytes() {
    return sizeof(shared_tile) + OTHER * SIDE * C * sizeof(float);
}

dim3 grid_of(const hk_sdpa_dims &d, int64_t heads) {
    return dim3((unsigned)((d.positions + OWN - 1) / OWN), (unsigned)heads, (unsigned)d.batch);
}

template <int C>
void launch_forward(hkc_lane *lane, float *out, float *lse, const float *q, const float *k,
                    const float *v, const float *sinks, const hk_sdpa_dims &d) {
    hkc_launch_named(lane, "attend", is_special(d) ? attend<C, true> : attend<C, false>,
                     grid_of(d, d.heads), THREADS, shared_bytes<C>(), out, lse, q, k, v, sinks, d);
}

template <kind KIND, int C> void launch_grad(hkc_lane *lane, float *to, const gradient &x) {
    hkc_launch_named(lane, "attend_grad",
                     is_special(x.d) ? attend_grad<KIND, C, true> : attend_grad<KIND, C, false>,
                     grid_of(x.d, KIND == OF_QUERIES ? x.d.heads : x.d.groups), THREADS,
                     shared_bytes<C>(), to, x);
}

// Launches the kernel for `width` columns.
template <kind KIND>
void launch_grad_of(hkc_lane *lane, float *to, const gradient &x, int64_t width) {
    if (width <= 4 * SIDE) return launch_grad<KIND, 4>(lane, to, x);
    if (width <= 8 * SIDE) return launch_grad<KIND, 8>(lane, to, x);
    if (width <= 16 * SIDE) return launch_grad<KIND, 16>(lane, to, x);
    assert(width <= 24 * SIDE);
    launch_grad<KIND, 24>(lane, to, x);
}

void forward(hkc_lane *lane, float *out, float *lse, const float *q, const float *k, const float *v,
             const float *sinks, const hk_sdpa_dims &d) {
    if (d.vwidth <= 4 * SIDE) return launch_forward<4>(lane, out, lse, q, k, v, sinks, d);
    if (d.vwidth <= 8 * SIDE) return launch_forward<8>(lane, out, lse, q, k, v, sinks, d);
    if (d.vwidth <= 16 * SIDE) return launch_forward<16>(lane, out, lse, q, k, v, sinks, d);
    assert(d.vwidth <= 24 * SIDE);
    launch_forward<24>(lane, out, lse, q, k, v, sinks, d);
}

void backward(hkc_lane *lane, float *dq, float *dk, float *dv, const float *dout, const float *q,
              const float *k, const float *v, const float *out, const float *lse,
              const hk_sdpa_dims &d) {
    const float *delta = launch_deltas(lane, dout, out, d);
    const gradient x = {dout,
                        q,
                        k,
                        v,
                        lse,
                        delta,
                        (float)d.scale,
                        (float)(d.cap > 0 ? d.cap : d.scale),
                        d,
                        d.heads / d.groups};
    launch_grad_of<OF_QUERIES>(lane, dq, x, d.width);
    launch_grad_of<OF_KEYS>(lane, dk, x, d.width);
    launch_grad_of<OF_VALUES>(lane, dv, x, d.vwidth);
}

} // namespace

extern "C" void hkc_sdpa_f32(struct hkc_lane *lane, float *out, float *lse, const float *q,
                             const float *k, const float *v, const float *sinks,
                             struct hk_sdpa_dims dims) {
    forward(lane, out, lse, q, k, v, sinks, dims);
}

extern "C" void hkc_sdpa_grad_f32(struct hkc_lane *lane, float *dq, float *dk, float *dv,
                                  const float *dout, const float *q, const float *k, const float *v,
                                  const float *out, const float *lse, struct hk_sdpa_dims dims) {
    backward(lane, dq, dk, dv, dout, q, k, v, out, lse, dims);
}
