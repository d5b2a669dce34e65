// CUDA twin of rmsnorm. A row of up to NARROW values belongs to a warp, a wider one to a block; threads keep what they
// have read of it in registers for the second pass. Columns of dgain are summed for parts of the rows side by side.
//
// Bytes moved: forward 8 for a float, dx 12, dgain 8 more, of which most come from the second cache behind dx; of bf16
// half of that.
//
// Differences from the contract: sums of a row are float; dgain sums rows in an order that depends on m and n.
#include "kernels/types.h"

#include "kernels/cuda/rows.h"

namespace {

using namespace hkc;

// `share` is 1 / n: a division would be a call.
template <class T, int W, bool WIDE>
__global__ void __launch_bounds__(WIDE ? WIDE_THREADS : NARROW_THREADS)
    rmsnorm(T *y, float *rstd, const T *x, const float *gain, int64_t m, int64_t n, float share,
            float eps) {
    typedef hkc_vector<T, W> values;
    typedef hkc_vector<float, W> floats;
    constexpr int HELD = W == 1 ? 2 : 32 / W;
    const place at = place_of_thread<WIDE>();
    if (at.row >= m) return;
    const int64_t first = at.row * n;
    const values *from = (const values *)(x + first);
    values *to = (values *)(y + first);
    const floats *gains = (const floats *)gain;
    HKC_SHARED(shared);
    values held[HELD];
    float squares = 0;
    each_vector<HELD>(at, n / W, [&](int64_t v, int h) {
        const values read = from[v];
        if (h >= 0) held[h] = read;
        for (int i = 0; i < W; i++) squares += hkc_float(read.at[i]) * hkc_float(read.at[i]);
    });
    const float r = rsqrtf(row_sum<WIDE>(squares, (float *)shared) * share + eps);
    if (at.first == 0) rstd[at.row] = r;
    each_vector<HELD>(at, n / W, [&](int64_t v, int h) {
        const values read = h >= 0 ? held[h] : from[v];
        floats scale;
        for (int i = 0; i < W; i++) scale.at[i] = 1;
        if (gain) scale = gains[v];
        values out;
        for (int i = 0; i < W; i++) out.at[i] = (T)(hkc_float(read.at[i]) * r * scale.at[i]);
        to[v] = out;
    });
}

template <class T, int W, bool WIDE>
__global__ void __launch_bounds__(WIDE ? WIDE_THREADS : NARROW_THREADS)
    rmsnorm_grad(T *dx, const T *dy, const T *x, const float *rstd, const float *gain, int64_t m,
                 int64_t n, float share, bool add) {
    typedef hkc_vector<T, W> values;
    typedef hkc_vector<float, W> floats;
    constexpr int HELD = W == 1 ? 2 : 16 / W;
    const place at = place_of_thread<WIDE>();
    if (at.row >= m) return;
    const values *dys = (const values *)(dy + at.row * n), *xs = (const values *)(x + at.row * n);
    values *to = (values *)(dx + at.row * n);
    const floats *gains = (const floats *)gain;
    HKC_SHARED(shared);
    floats held[HELD]; // dy gain
    values held_x[HELD];
    const auto gained = [&](int64_t v) {
        const values read = dys[v];
        floats out = hkc_floats(read);
        if (gain) {
            const floats scale = gains[v];
            for (int i = 0; i < W; i++) out.at[i] *= scale.at[i];
        }
        return out;
    };
    float along = 0;
    each_vector<HELD>(at, n / W, [&](int64_t v, int h) {
        const floats g = gained(v);
        const values read = xs[v];
        if (h >= 0) held[h] = g;
        if (h >= 0) held_x[h] = read;
        for (int i = 0; i < W; i++) along += g.at[i] * hkc_float(read.at[i]);
    });
    const float r = rstd[at.row];
    const float back = row_sum<WIDE>(along, (float *)shared) * r * r * share;
    each_vector<HELD>(at, n / W, [&](int64_t v, int h) {
        const floats g = h >= 0 ? held[h] : gained(v);
        const values read = h >= 0 ? held_x[h] : xs[v];
        values out;
        for (int i = 0; i < W; i++) out.at[i] = (T)0;
        if (add) out = to[v];
        for (int i = 0; i < W; i++) {
            const float d = r * (g.at[i] - hkc_float(read.at[i]) * back);
            out.at[i] = (T)(hkc_float(out.at[i]) + d);
        }
        to[v] = out;
    });
}

// The terms of dgain.
template <class T> struct along_row {
    const T *dy, *x;
    const float *rstd;
    int64_t n;
    template <int W> HKC_DEVICE hkc_vector<float, W> at(int64_t i, int64_t j) const {
        const hkc_vector<float, W> d = vector_at<W>(dy, n, i, j);
        hkc_vector<float, W> out = vector_at<W>(x, n, i, j);
        for (int k = 0; k < W; k++) out.at[k] = d.at[k] * (out.at[k] * rstd[i]);
        return out;
    }
};

template <class T, int W, bool WIDE>
void launch_forward(hkc_lane *lane, T *y, float *rstd, const T *x, const float *gain, int64_t m,
                    int64_t n, float eps) {
    hkc_launch(lane, (rmsnorm<T, W, WIDE>), row_blocks(m, WIDE), row_threads(WIDE),
               32 * sizeof(float), y, rstd, x, gain, m, n, 1 / (float)n, eps);
}

template <class T, int W, bool WIDE>
void launch_grad(hkc_lane *lane, T *dx, const T *dy, const T *x, const float *rstd,
                 const float *gain, int64_t m, int64_t n, bool add) {
    hkc_launch(lane, (rmsnorm_grad<T, W, WIDE>), row_blocks(m, WIDE), row_threads(WIDE),
               32 * sizeof(float), dx, dy, x, rstd, gain, m, n, 1 / (float)n, add);
}

template <class T>
void forward(hkc_lane *lane, T *y, float *rstd, const T *x, const float *gain, int64_t m, int64_t n,
             float eps) {
    constexpr int W = VECTOR<T>;
    const bool wide = n > NARROW, vectors = as_vectors<W>(n, y, x, gain);
    const auto launch = vectors ? (wide ? launch_forward<T, W, true> : launch_forward<T, W, false>)
                                : (wide ? launch_forward<T, 1, true> : launch_forward<T, 1, false>);
    launch(lane, y, rstd, x, gain, m, n, eps);
}

template <class T>
void backward(hkc_lane *lane, T *dx, float *dgain, const T *dy, const T *x, const float *rstd,
              const float *gain, int64_t m, int64_t n, hk_write dx_write, hk_write dgain_write) {
    constexpr int W = VECTOR<T>;
    const bool wide = n > NARROW, vectors = as_vectors<W>(n, dx, dy, x, gain);
    const auto launch = vectors ? (wide ? launch_grad<T, W, true> : launch_grad<T, W, false>)
                                : (wide ? launch_grad<T, 1, true> : launch_grad<T, 1, false>);
    launch(lane, dx, dy, x, rstd, gain, m, n, dx_write == HK_ADD);
    if (dgain)
        column_sums(lane, dgain, along_row<T>{dy, x, rstd, n}, m, n, dgain_write == HK_ADD, dy, x);
}

} // namespace

extern "C" void hkc_rmsnorm_f32(struct hkc_lane *lane, float *y, float *rstd, const float *x,
                                const float *gain, int64_t m, int64_t n, double eps) {
    forward(lane, y, rstd, x, gain, m, n, (float)eps);
}

extern "C" void hkc_rmsnorm_bf16(struct hkc_lane *lane, hk_bf16 *y, float *rstd, const hk_bf16 *x,
                                 const float *gain, int64_t m, int64_t n, double eps) {
    forward(lane, hkc_values(y), rstd, hkc_values(x), gain, m, n, (float)eps);
}

extern "C" void hkc_rmsnorm_grad_f32(struct hkc_lane *lane, float *dx, float *dgain,
                                     const float *dy, const float *x, const float *rstd,
                                     const float *gain, int64_t m, int64_t n,
                                     enum hk_write dx_write, enum hk_write dgain_write) {
    backward(lane, dx, dgain, dy, x, rstd, gain, m, n, dx_write, dgain_write);
}

extern "C" void hkc_rmsnorm_grad_bf16(struct hkc_lane *lane, hk_bf16 *dx, float *dgain,
                                      const hk_bf16 *dy, const hk_bf16 *x, const float *rstd,
                                      const float *gain, int64_t m, int64_t n,
                                      enum hk_write dx_write, enum hk_write dgain_write) {
    backward(lane, hkc_values(dx), dgain, hkc_values(dy), hkc_values(x), rstd, gain, m, n, dx_write,
             dgain_write);
}
