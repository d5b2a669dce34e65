// CUDA twin of sdpa for values of bf16, by tensor cores. Scores and all sums are float; the weights, and their gradients,
// are rounded to bf16 as they become operands, which moves each by at most 2^-8 of itself.
//
// A block of four warps has 128 queries of a head, or, for gradients, 64 queries or 64 keys, and walks over tiles of 32
// of the others. It computes up to 128 columns of the result; where there are more, further blocks make the weights
// anew. dq is one kernel, dk and dv are another: seven GEMMs in place of five, but each sums in one fixed order.
#include <math.h>
#include <string.h>

#include "kernels/sdpa/hopper.h"
#include "kernels/sdpa/matrix_device.h"
#include "kernels/sdpa/sdpa.h"

namespace {

using namespace attention;

constexpr float LOG2E = 1.44269504f, LN2 = 0.693147181f;
constexpr int OWN_FORWARD = 128, OWN_GRADIENT = 64,
              SHARED_MAX = 163 << 10; // Every device has as much.

// The part of a block in a grid of queries or keys x heads or groups times chunks x batches: its part of the columns is
// C panels from `begin` on.
struct part {
    int64_t begin, head, batch;
};

HKC_DEVICE part part_of(int chunks, int panels) {
    return {(int64_t)(blockIdx.y % (unsigned)chunks) * panels * PANEL,
            (int64_t)(blockIdx.y / (unsigned)chunks), (int64_t)blockIdx.z};
}

// Steps of 16 columns of `width` from `begin` on, at most of C panels.
HKC_DEVICE int steps_from(int64_t begin, int64_t width, int panels) {
    const int64_t left = width - begin;
    return left <= 0 ? 0 : left < panels * PANEL ? steps_of(left) : panels * (PANEL / 16);
}

struct attention_case {
    const bf16 *q, *k, *v;
    hk_sdpa_dims d;
    int chunks, each; // Chunks of columns; heads of a group.
    bool two;         // Tiles at once.
};

// A row's largest score and the thread's part of the sum of weights, in units of a factor of 2.
template <int R> struct softmax {
    float most[R][2], total[R][2];

    HKC_DEVICE softmax() {
        for (int i = 0; i < R; i++) {
            for (int half = 0; half < 2; half++) most[i][half] = -INFINITY, total[i][half] = 0;
        }
    }

    // Turns the scores of the thread's part of a row into weights; returns what earlier ones shrink by.
    HKC_DEVICE float fold(float (&score)[TILE / 8][4], int i, int half, float peak) {
        const float now = fmaxf(most[i][half], quad_max(peak));
        const float base = now == -INFINITY ? 0 : now;
        const float shrink = exp2f(most[i][half] - base);
        float part = 0;
#pragma unroll
        for (int j = 0; j < TILE / 8; j++) {
#pragma unroll
            for (int e = half * 2; e < half * 2 + 2; e++) {
                score[j][e] = exp2f(score[j][e] - base);
                part += score[j][e];
            }
        }
        total[i][half] = total[i][half] * shrink + part;
        most[i][half] = now;
        return shrink;
    }
};

// tanh of the thread's scores times a factor.
template <int R> HKC_DEVICE void bend_scores(float (&score)[R][TILE / 8][4], float factor) {
#pragma unroll
    for (int r = 0; r < R; r++) {
#pragma unroll
        for (int j = 0; j < TILE / 8; j++) {
#pragma unroll
            for (int e = 0; e < 4; e++) score[r][j][e] = hk_tanh_f32(score[r][j][e] * factor);
        }
    }
}

// Scales the thread's part of a row of scores and hides what `query` does not see; returns the largest one.
template <class M>
HKC_DEVICE float scale_scores(float (&score)[TILE / 8][4], int half, float scale, const M &mask,
                              bool all, int64_t query, int64_t key) {
    float peak = -INFINITY;
#pragma unroll
    for (int j = 0; j < TILE / 8; j++) {
#pragma unroll
        for (int e = 0; e < 2; e++) {
            float &x = score[j][half * 2 + e];
            x = all || mask.sees(query, key + j * 8 + e) ? x * scale : -INFINITY;
            peak = fmaxf(peak, x);
        }
    }
    return peak;
}

// Folds a tile of scores, which become weights, into the running sums; returns whether earlier ones shrink, and by how much.
template <int R, class M>
HKC_DEVICE bool fold_scores(softmax<R> &softmax, float (&score)[R][TILE / 8][4],
                            float (&shrink)[R][2], float scale, const M &mask, bool all,
                            int64_t own, int64_t key) {
    const int lane = (int)threadIdx.x % 32;
    bool shrinks = false;
#pragma unroll
    for (int r = 0; r < R; r++) {
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const int64_t query = own + r * 16 + half * 8 + lane / 4;
            const float peak =
                scale_scores(score[r], half, scale, mask, all, query, key + lane % 4 * 2);
            shrink[r][half] = softmax.fold(score[r], r, half, peak);
            shrinks |= shrink[r][half] != 1;
        }
    }
    return shrinks;
}

template <int R, int C>
HKC_DEVICE void shrink_sums(float (&sum)[R][C * 8][4], const float (&shrink)[R][2]) {
#pragma unroll
    for (int r = 0; r < R; r++) {
#pragma unroll
        for (int j = 0; j < C * 8; j++) {
#pragma unroll
            for (int e = 0; e < 4; e++) sum[r][j][e] *= shrink[r][e / 2];
        }
    }
}

template <int C, bool SPECIAL>
__global__ void __launch_bounds__(MATRIX_THREADS, 2)
    attend(bf16 *out, float *lse, const float *sinks, attention_case x) {
    HKC_SHARED(memory);
    constexpr int R = OWN_FORWARD / 16 / WARPS;
    const hk_sdpa_dims &d = x.d;
    const part part = part_of(x.chunks, C);
    // Where later queries see more keys, they come first.
    const int64_t first = (int64_t)(gridDim.x - 1 - blockIdx.x) * OWN_FORWARD;
    const int lane = (int)threadIdx.x % 32, row = (int)threadIdx.x / 32 * R * 16;
    const int64_t own = first + row, g = (int)part.head / x.each;
    const mask<SPECIAL> mask = mask_of<SPECIAL>(d, part.batch);
    const int steps = steps_of(d.width), wide = steps_from(part.begin, d.vwidth, C);
    const float scale = factor_of<SPECIAL>(d) * LOG2E;
    unsigned char *tiles = memory + matrix_bytes(OWN_FORWARD, d.width);
    softmax<R> softmax;
    float sum[R][C * 8][4] = {};

    const int64_t from = mask.keys_from(first) / TILE * TILE;
    const int64_t to = mask.keys_to(first + OWN_FORWARD - 1);
    const int key_bytes = matrix_bytes(TILE, d.width);
    auto load = [&](int i, unsigned char *tile) {
        if (i == 0) {
            copy_matrix<OWN_FORWARD>(memory,
                                     rows_of(x.q, d, part.batch, part.head, d.heads, d.width),
                                     first, 0, d.width);
        }
        const int64_t key = from + (int64_t)i * TILE;
        copy_matrix<TILE>(tile, rows_of(x.k, d, part.batch, g, d.groups, d.width), key, 0, d.width);
        copy_matrix<TILE>(tile + key_bytes, rows_of(x.v, d, part.batch, g, d.groups, d.vwidth), key,
                          part.begin, wide * 16);
    };
    auto compute = [&](int i, const unsigned char *tile) {
        const int64_t key = from + (int64_t)i * TILE, last = own + R * 16 - 1;
        if (!mask.sees_some(own, last, key, key + TILE - 1)) return;
        const bool all = mask.sees_all(own, last, key, key + TILE - 1);
        float score[R][TILE / 8][4];
        multiply_rows<OWN_FORWARD>(score, memory, row, tile, steps);
        if (SPECIAL && d.cap > 0) bend_scores<R>(score, bend_of(d));
        float shrink[R][2];
        const bool shrinks = fold_scores(softmax, score, shrink, scale, mask, all, own, key);
        if (__any_sync(~0u, shrinks)) shrink_sums<R, C>(sum, shrink);
        add_weighted<R, C>(sum, weights<R>(score), tile + key_bytes, wide);
    };
    each_tile(tiles, key_bytes + matrix_bytes(TILE, C * PANEL), x.two,
              (int)((to - from + TILE - 1) / TILE), load, compute);

#pragma unroll
    for (int r = 0; r < R; r++) {
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const int64_t query = own + r * 16 + half * 8 + lane / 4;
            float total = quad_sum(softmax.total[r][half]), most = softmax.most[r][half] * LN2;
            if (query >= d.positions) continue;
            const float share = (sinks ? add_sink(most, total, sinks[part.head]) : 1) / total;
            if (lane % 4 == 0 && part.begin == 0) {
                lse[(part.batch * d.heads + part.head) * d.positions + query] = most + logf(total);
            }
            store_row(out + ((part.batch * d.positions + query) * d.heads + part.head) * d.vwidth,
                      part.begin, d.vwidth, sum[r], half, share);
        }
    }
}

struct gradient {
    attention_case of;
    const bf16 *dout;
    const float *lse, *delta;
};

// Turns scores and what their weights' gradients are into weights and the scores' gradients, without the scale. Where
// scores have a cap, `score` is the tanh of one.
HKC_DEVICE void weigh(float &score, float &dweight, bool seen, float scale, float lse, float delta,
                      bool capped) {
    const float slope = capped ? 1 - score * score : 1;
    score = seen ? exp2f(score * scale - lse * LOG2E) : 0;
    dweight = seen ? score * (dweight - delta) * slope : 0;
}

// lse and delta of a query of a head, whose numbers begin at `rows`, and of the eighth behind it; zeros behind the last one.
HKC_DEVICE void load_statistics(float (&lse)[2], float (&delta)[2], const gradient &x, int64_t rows,
                                int64_t query) {
#pragma unroll
    for (int half = 0; half < 2; half++, query += 8) {
        const bool here = query < x.of.d.positions;
        lse[half] = here ? x.lse[rows + query] : 0;
        delta[half] = here ? x.delta[rows + query] : 0;
    }
}

template <int C, bool SPECIAL>
__global__ void __launch_bounds__(MATRIX_THREADS, 2) attend_grad_queries(bf16 *dq, gradient x) {
    HKC_SHARED(memory);
    const hk_sdpa_dims &d = x.of.d;
    const part part = part_of(x.of.chunks, C);
    const int64_t first = (int64_t)(gridDim.x - 1 - blockIdx.x) * OWN_GRADIENT;
    const int lane = (int)threadIdx.x % 32, row = (int)threadIdx.x / 32 * 16;
    const int64_t own = first + row, g = (int)part.head / x.of.each;
    const mask<SPECIAL> mask = mask_of<SPECIAL>(d, part.batch);
    const int steps = steps_of(d.width), vsteps = steps_of(d.vwidth);
    const float scale = factor_of<SPECIAL>(d) * LOG2E;
    const bool capped = SPECIAL && d.cap > 0;
    unsigned char *douts = memory + matrix_bytes(OWN_GRADIENT, d.width);
    unsigned char *tiles = douts + matrix_bytes(OWN_GRADIENT, d.vwidth);
    const int key_bytes = matrix_bytes(TILE, d.width);
    float sum[1][C * 8][4] = {}, lse[2], delta[2];
    load_statistics(lse, delta, x, (part.batch * d.heads + part.head) * d.positions,
                    own + lane / 4);

    const int64_t from = mask.keys_from(first) / TILE * TILE;
    const int64_t to = mask.keys_to(first + OWN_GRADIENT - 1);
    auto load = [&](int i, unsigned char *tile) {
        if (i == 0) {
            copy_matrix<OWN_GRADIENT>(memory,
                                      rows_of(x.of.q, d, part.batch, part.head, d.heads, d.width),
                                      first, 0, d.width);
            copy_matrix<OWN_GRADIENT>(douts,
                                      rows_of(x.dout, d, part.batch, part.head, d.heads, d.vwidth),
                                      first, 0, d.vwidth);
        }
        const int64_t key = from + (int64_t)i * TILE;
        copy_matrix<TILE>(tile, rows_of(x.of.k, d, part.batch, g, d.groups, d.width), key, 0,
                          d.width);
        copy_matrix<TILE>(tile + key_bytes, rows_of(x.of.v, d, part.batch, g, d.groups, d.vwidth),
                          key, 0, d.vwidth);
    };
    auto compute = [&](int i, const unsigned char *tile) {
        const int64_t key = from + (int64_t)i * TILE;
        if (!mask.sees_some(own, own + 15, key, key + TILE - 1)) return;
        const bool all = mask.sees_all(own, own + 15, key, key + TILE - 1);
        float score[1][TILE / 8][4], dweight[1][TILE / 8][4];
        multiply_rows<OWN_GRADIENT>(score, memory, row, tile, steps);
        multiply_rows<OWN_GRADIENT>(dweight, douts, row, tile + key_bytes, vsteps);
        if (capped) bend_scores<1>(score, bend_of(d));
#pragma unroll
        for (int j = 0; j < TILE / 8; j++) {
#pragma unroll
            for (int e = 0; e < 4; e++) {
                const bool seen = all || mask.sees(own + e / 2 * 8 + lane / 4,
                                                   key + j * 8 + lane % 4 * 2 + e % 2);
                weigh(score[0][j][e], dweight[0][j][e], seen, scale, lse[e / 2], delta[e / 2],
                      capped);
            }
        }
        add_weighted<1, C>(sum, weights<1>(dweight),
                           tile + (int)part.begin / PANEL * TILE * LINE_BYTES,
                           steps_from(part.begin, d.width, C));
    };
    each_tile(tiles, key_bytes + matrix_bytes(TILE, d.vwidth), x.of.two,
              (int)((to - from + TILE - 1) / TILE), load, compute);

#pragma unroll
    for (int half = 0; half < 2; half++) {
        const int64_t query = own + half * 8 + lane / 4;
        if (query >= d.positions) continue;
        store_row(dq + ((part.batch * d.positions + query) * d.heads + part.head) * d.width,
                  part.begin, d.width, sum[0], half, (float)d.scale);
    }
}

// Copies lse and delta of a tile's queries of a head, whose numbers begin at `rows`; zeros behind the last one.
HKC_DEVICE void copy_statistics(unsigned char *to, const gradient &x, int64_t rows, int64_t query) {
    if (threadIdx.x >= 2 * TILE) return;
    const float *numbers = threadIdx.x < TILE ? x.lse : x.delta;
    const int64_t at = query + threadIdx.x % TILE;
    const bool here = at < x.of.d.positions;
    copy4(shared_address(to) + threadIdx.x * 4, numbers + (here ? rows + at : 0), here ? 4 : 0);
}

// Stores the thread's part of the rows of two keys, `key` and the eighth behind it.
template <int C>
HKC_DEVICE void store_key_grads(bf16 *dk, bf16 *dv, const float (&dkey)[C * 8][4],
                                const float (&dvalue)[C * 8][4], const hk_sdpa_dims &d,
                                const part &part, int64_t key) {
#pragma unroll
    for (int half = 0; half < 2; half++, key += 8) {
        if (key >= d.positions) continue;
        const int64_t to_row = (part.batch * d.positions + key) * d.groups + part.head;
        store_row(dk + to_row * d.width, part.begin, d.width, dkey, half, (float)d.scale);
        store_row(dv + to_row * d.vwidth, part.begin, d.vwidth, dvalue, half, 1);
    }
}

// Tiles are of queries, head after head of the group; behind a tile's rows are their lse and delta.
template <int C, bool SPECIAL>
__global__ void __launch_bounds__(MATRIX_THREADS, 2)
    attend_grad_keys(bf16 *dk, bf16 *dv, gradient x) {
    HKC_SHARED(memory);
    const hk_sdpa_dims &d = x.of.d;
    const part part = part_of(x.of.chunks, C);
    const int64_t first = (int64_t)blockIdx.x * OWN_GRADIENT;
    const int lane = (int)threadIdx.x % 32, row = (int)threadIdx.x / 32 * 16;
    const int64_t own = first + row;
    const mask<SPECIAL> mask = mask_of<SPECIAL>(d, part.batch);
    const int steps = steps_of(d.width), vsteps = steps_of(d.vwidth);
    const float scale = factor_of<SPECIAL>(d) * LOG2E;
    const bool capped = SPECIAL && d.cap > 0;
    unsigned char *values = memory + matrix_bytes(OWN_GRADIENT, d.width);
    unsigned char *tiles = values + matrix_bytes(OWN_GRADIENT, d.vwidth);
    const int query_bytes = matrix_bytes(TILE, d.width), dout_bytes = matrix_bytes(TILE, d.vwidth);
    float dkey[1][C * 8][4] = {}, dvalue[1][C * 8][4] = {};

    const int64_t from = mask.queries_from(first) / TILE * TILE;
    const int64_t to = mask.queries_to(first + OWN_GRADIENT - 1);
    const int of_head = (int)((to - from + TILE - 1) / TILE);
    auto load = [&](int i, unsigned char *tile) {
        const int64_t h = part.head * x.of.each + i / of_head;
        const int64_t query = from + (int64_t)(i % of_head) * TILE;
        if (i == 0) {
            copy_matrix<OWN_GRADIENT>(memory,
                                      rows_of(x.of.k, d, part.batch, part.head, d.groups, d.width),
                                      first, 0, d.width);
            copy_matrix<OWN_GRADIENT>(values,
                                      rows_of(x.of.v, d, part.batch, part.head, d.groups, d.vwidth),
                                      first, 0, d.vwidth);
        }
        copy_matrix<TILE>(tile, rows_of(x.of.q, d, part.batch, h, d.heads, d.width), query, 0,
                          d.width);
        copy_matrix<TILE>(tile + query_bytes, rows_of(x.dout, d, part.batch, h, d.heads, d.vwidth),
                          query, 0, d.vwidth);
        copy_statistics(tile + query_bytes + dout_bytes, x,
                        (part.batch * d.heads + h) * d.positions, query);
    };
    auto compute = [&](int i, const unsigned char *tile) {
        const int64_t query = from + (int64_t)(i % of_head) * TILE;
        if (!mask.sees_some(query, query + TILE - 1, own, own + 15)) return;
        const bool all =
            query + TILE <= d.positions && mask.sees_all(query, query + TILE - 1, own, own + 15);
        const unsigned char *dout = tile + query_bytes;
        const float *lse = (const float *)(dout + dout_bytes), *delta = lse + TILE;
        float score[1][TILE / 8][4], dweight[1][TILE / 8][4];
        multiply_rows<OWN_GRADIENT>(score, memory, row, tile, steps);
        multiply_rows<OWN_GRADIENT>(dweight, values, row, dout, vsteps);
        if (capped) bend_scores<1>(score, bend_of(d));
#pragma unroll
        for (int j = 0; j < TILE / 8; j++) {
#pragma unroll
            for (int e = 0; e < 4; e++) {
                const int column = j * 8 + lane % 4 * 2 + e % 2;
                const bool seen = all || mask.sees(query + column, own + e / 2 * 8 + lane / 4);
                weigh(score[0][j][e], dweight[0][j][e], seen, scale, lse[column], delta[column],
                      capped);
            }
        }
        const int panels = (int)part.begin / PANEL * TILE * LINE_BYTES;
        add_weighted<1, C>(dvalue, weights<1>(score), dout + panels,
                           steps_from(part.begin, d.vwidth, C));
        add_weighted<1, C>(dkey, weights<1>(dweight), tile + panels,
                           steps_from(part.begin, d.width, C));
    };
    each_tile(tiles, query_bytes + dout_bytes + 2 * TILE * (int)sizeof(float), x.of.two,
              of_head * x.of.each, load, compute);

    store_key_grads<C>(dk, dv, dkey[0], dvalue[0], d, part, own + lane / 4);
}

// The most that a block may have on this device: SHARED_MAX on A100 and newer ones of data centers, 99 KB on others.
int shared_here() {
    int device = 0, bytes = 0;
    if (cudaGetDevice(&device) != cudaSuccess ||
        cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device) !=
            cudaSuccess)
        return SHARED_MAX;
    return bytes < SHARED_MAX ? bytes : SHARED_MAX;
}

// With the shared memory for own rows and a tile, of which there are two where they have room. Where one has none, which is
// where rows are wider than 256 on a device with 99 KB, the launch fails.
size_t shared_bytes(attention_case *x, int own, int tile) {
    x->two = own + 2 * tile <= shared_here();
    assert(own + tile <= SHARED_MAX);
    return (size_t)(own + (x->two ? 2 : 1) * tile);
}

dim3 grid_of(const attention_case &x, int own, int64_t heads) {
    return dim3((unsigned)((x.d.positions + own - 1) / own), (unsigned)(heads * x.chunks),
                (unsigned)x.d.batch);
}

attention_case case_of(const hk_bf16 *q, const hk_bf16 *k, const hk_bf16 *v,
                       const hk_sdpa_dims &d) {
    return {hkc_values(q), hkc_values(k), hkc_values(v), d, 1, (int)(d.heads / d.groups), true};
}

template <int C>
void forward(hkc_lane *lane, hk_bf16 *out, float *lse, const float *sinks, attention_case x) {
    x.chunks = (panels_of(x.d.vwidth) + C - 1) / C;
    const int tile = matrix_bytes(TILE, x.d.width) + matrix_bytes(TILE, C * PANEL);
    const size_t bytes = shared_bytes(&x, matrix_bytes(OWN_FORWARD, x.d.width), tile);
    hkc_launch_named(lane, "attend", is_special(x.d) ? attend<C, true> : attend<C, false>,
                     grid_of(x, OWN_FORWARD, x.d.heads), MATRIX_THREADS, bytes, hkc_values(out),
                     lse, sinks, x);
}

template <int C> void backward(hkc_lane *lane, hk_bf16 *dq, hk_bf16 *dk, hk_bf16 *dv, gradient x) {
    const hk_sdpa_dims &d = x.of.d;
    const int rows = matrix_bytes(1, d.width) + matrix_bytes(1, d.vwidth);
    const int panels = panels_of(d.width), vpanels = panels_of(d.vwidth);
    x.of.chunks = (panels + C - 1) / C;
    const size_t bytes = shared_bytes(&x.of, OWN_GRADIENT * rows, TILE * rows);
    hkc_launch_named(lane, "attend_grad_queries",
                     is_special(d) ? attend_grad_queries<C, true> : attend_grad_queries<C, false>,
                     grid_of(x.of, OWN_GRADIENT, d.heads), MATRIX_THREADS, bytes, hkc_values(dq),
                     x);
    x.of.chunks = ((panels > vpanels ? panels : vpanels) + C - 1) / C;
    const int tile = TILE * (rows + 2 * (int)sizeof(float));
    const size_t key_bytes = shared_bytes(&x.of, OWN_GRADIENT * rows, tile);
    hkc_launch_named(lane, "attend_grad_keys",
                     is_special(d) ? attend_grad_keys<C, true> : attend_grad_keys<C, false>,
                     grid_of(x.of, OWN_GRADIENT, d.groups), MATRIX_THREADS, key_bytes,
                     hkc_values(dk), hkc_values(dv), x);
}

} // namespace

extern "C" void hkc_sdpa_bf16(struct hkc_lane *lane, hk_bf16 *out, float *lse, const hk_bf16 *q,
                              const hk_bf16 *k, const hk_bf16 *v, const float *sinks,
                              struct hk_sdpa_dims dims) {
    if (by_warpgroups(lane, dims)) {
        return forward_by_warpgroups(lane, hkc_values(out), lse, hkc_values(q), hkc_values(k),
                                     hkc_values(v), sinks, dims);
    }
    const attention_case x = case_of(q, k, v, dims);
    if (dims.vwidth <= PANEL) return forward<1>(lane, out, lse, sinks, x);
    forward<2>(lane, out, lse, sinks, x);
}

extern "C" void hkc_sdpa_grad_bf16(struct hkc_lane *lane, hk_bf16 *dq, hk_bf16 *dk, hk_bf16 *dv,
                                   const hk_bf16 *dout, const hk_bf16 *q, const hk_bf16 *k,
                                   const hk_bf16 *v, const hk_bf16 *out, const float *lse,
                                   struct hk_sdpa_dims dims) {
    const gradient x = {case_of(q, k, v, dims), hkc_values(dout), lse,
                        launch_deltas(lane, hkc_values(dout), hkc_values(out), dims)};
    if (by_warpgroups(lane, dims)) {
        return backward_by_warpgroups(lane, hkc_values(dq), hkc_values(dk), hkc_values(dv), x.dout,
                                      x.of.q, x.of.k, x.of.v, lse, x.delta, dims);
    }
    if (dims.width <= PANEL && dims.vwidth <= PANEL) return backward<1>(lane, dq, dk, dv, x);
    backward<2>(lane, dq, dk, dv, x);
}
