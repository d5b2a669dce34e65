// CUDA twin of softmax. A row of up to NARROW values belongs to a warp, a wider one to a block; threads keep what they
// have read of it in registers, the rest of a long row is read three times, out of the second cache.
//
// Bytes moved: forward 8 for a float, backward 12; of bf16 half of that.
//
// Differences from the contract: sums of a row are float.
#include "kernels/types.h"

#include <math.h>

#include "kernels/cuda/rows.h"

namespace {

using namespace hkc;

template <class T, int W, bool WIDE>
__global__ void __launch_bounds__(WIDE ? WIDE_THREADS : NARROW_THREADS)
    softmax(T *r, const T *a, int64_t m, int64_t n) {
    typedef hkc_vector<T, W> values;
    typedef hkc_vector<float, W> floats;
    constexpr int HELD = W == 1 ? 2 : 16 / W;
    const place at = place_of_thread<WIDE>();
    if (at.row >= m) return;
    const values *from = (const values *)(a + at.row * n);
    values *to = (values *)(r + at.row * n);
    HKC_SHARED(shared);
    float *numbers = (float *)shared;
    floats held[HELD];
    float most = -INFINITY;
    each_vector<HELD>(at, n / W, [&](int64_t v, int h) {
        const floats read = hkc_floats(from[v]);
        if (h >= 0) held[h] = read;
        for (int i = 0; i < W; i++) most = fmaxf(most, read.at[i]);
    });
    most = row_max<WIDE>(most, numbers);
    float sum = 0;
    each_vector<HELD>(at, n / W, [&](int64_t v, int h) {
        const floats read = h >= 0 ? held[h] : hkc_floats(from[v]);
        floats power;
        for (int i = 0; i < W; i++) sum += power.at[i] = expf(read.at[i] - most);
        if (h >= 0) held[h] = power;
    });
    const float share = 1 / row_sum<WIDE>(sum, numbers + 32);
    each_vector<HELD>(at, n / W, [&](int64_t v, int h) {
        floats power;
        if (h >= 0) {
            power = held[h];
        } else {
            power = hkc_floats(from[v]);
            for (int i = 0; i < W; i++) power.at[i] = expf(power.at[i] - most);
        }
        values out;
        for (int i = 0; i < W; i++) out.at[i] = (T)(power.at[i] * share);
        to[v] = out;
    });
}

template <class T, int W, bool WIDE>
__global__ void __launch_bounds__(WIDE ? WIDE_THREADS : NARROW_THREADS)
    softmax_grad(T *da, const T *dr, const T *r, int64_t m, int64_t n, bool add) {
    typedef hkc_vector<T, W> values;
    constexpr int HELD = W == 1 ? 2 : 16 / W;
    const place at = place_of_thread<WIDE>();
    if (at.row >= m) return;
    const values *drs = (const values *)(dr + at.row * n), *rs = (const values *)(r + at.row * n);
    values *to = (values *)(da + at.row * n);
    HKC_SHARED(shared);
    values held_dr[HELD], held_r[HELD];
    float along = 0;
    each_vector<HELD>(at, n / W, [&](int64_t v, int h) {
        const values back = drs[v], own = rs[v];
        if (h >= 0) held_dr[h] = back;
        if (h >= 0) held_r[h] = own;
        for (int i = 0; i < W; i++) along += hkc_float(back.at[i]) * hkc_float(own.at[i]);
    });
    const float mean = row_sum<WIDE>(along, (float *)shared);
    each_vector<HELD>(at, n / W, [&](int64_t v, int h) {
        const values back = h >= 0 ? held_dr[h] : drs[v], own = h >= 0 ? held_r[h] : rs[v];
        values out;
        for (int i = 0; i < W; i++) out.at[i] = (T)0;
        if (add) out = to[v];
        for (int i = 0; i < W; i++) {
            const float d = hkc_float(own.at[i]) * (hkc_float(back.at[i]) - mean);
            out.at[i] = (T)(hkc_float(out.at[i]) + d);
        }
        to[v] = out;
    });
}

template <class T, int W, bool WIDE>
void launch_forward(hkc_lane *lane, T *r, const T *a, int64_t m, int64_t n) {
    hkc_launch(lane, (softmax<T, W, WIDE>), row_blocks(m, WIDE), row_threads(WIDE),
               64 * sizeof(float), r, a, m, n);
}

template <class T, int W, bool WIDE>
void launch_grad(hkc_lane *lane, T *da, const T *dr, const T *r, int64_t m, int64_t n, bool add) {
    hkc_launch(lane, (softmax_grad<T, W, WIDE>), row_blocks(m, WIDE), row_threads(WIDE),
               32 * sizeof(float), da, dr, r, m, n, add);
}

template <class T> void forward(hkc_lane *lane, T *r, const T *a, int64_t m, int64_t n) {
    constexpr int W = VECTOR<T>;
    const bool wide = n > NARROW, vectors = as_vectors<W>(n, r, a);
    const auto launch = vectors ? (wide ? launch_forward<T, W, true> : launch_forward<T, W, false>)
                                : (wide ? launch_forward<T, 1, true> : launch_forward<T, 1, false>);
    launch(lane, r, a, m, n);
}

template <class T>
void backward(hkc_lane *lane, T *da, const T *dr, const T *r, int64_t m, int64_t n,
              hk_write write) {
    constexpr int W = VECTOR<T>;
    const bool wide = n > NARROW, vectors = as_vectors<W>(n, da, dr, r);
    const auto launch = vectors ? (wide ? launch_grad<T, W, true> : launch_grad<T, W, false>)
                                : (wide ? launch_grad<T, 1, true> : launch_grad<T, 1, false>);
    launch(lane, da, dr, r, m, n, write == HK_ADD);
}

} // namespace

extern "C" void hkc_softmax_f32(struct hkc_lane *lane, float *r, const float *a, int64_t m,
                                int64_t n) {
    forward(lane, r, a, m, n);
}

extern "C" void hkc_softmax_bf16(struct hkc_lane *lane, hk_bf16 *r, const hk_bf16 *a, int64_t m,
                                 int64_t n) {
    forward(lane, hkc_values(r), hkc_values(a), m, n);
}

extern "C" void hkc_softmax_grad_f32(struct hkc_lane *lane, float *da, const float *dr,
                                     const float *r, int64_t m, int64_t n, enum hk_write write) {
    backward(lane, da, dr, r, m, n, write);
}

extern "C" void hkc_softmax_grad_bf16(struct hkc_lane *lane, hk_bf16 *da, const hk_bf16 *dr,
                                      const hk_bf16 *r, int64_t m, int64_t n, enum hk_write write) {
    backward(lane, hkc_values(da), hkc_values(dr), hkc_values(r), m, n, write);
}
