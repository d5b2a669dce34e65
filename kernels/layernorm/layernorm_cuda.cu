// CUDA twin of layernorm. Threads keep what they have read of a row in registers: the mean, the variance around it and
// the result are three passes over it. Bytes moved: forward 8 for a float, dx 12, dgain and dbias 8 more; of bf16
// half of that.
// Differences from the contract: dgain and dbias sum rows in an order that depends on m and n.
#include "kernels/layernorm/layernorm.h"

#include "kernels/cuda/rows.h"

namespace {

using namespace hkc;

// `share` is 1 / n: a division would be a call.
template <class T, int W, bool WIDE>
__global__ void __launch_bounds__(WIDE ? WIDE_THREADS : NARROW_THREADS, 1)
    layernorm(T *y, float *mean, float *rstd, const T *x, const float *gain, const float *bias,
              int64_t m, int64_t n, float share, float eps) {
    typedef hkc_vector<T, W> values;
    typedef hkc_vector<float, W> floats;
    constexpr int HELD = W == 1 ? 2 : 32 / W;
    HKC_SHARED(shared);
    float *numbers = (float *)shared;
    const place at = place_of_thread<WIDE>();
    if (at.row >= m) return;
    const values *from = (const values *)(x + at.row * n);
    values held[HELD];
    float sum = 0, squares = 0;
    each_vector<HELD>(at, n / W, [&](int64_t v, int h) {
        const values read = from[v];
        if (h >= 0) held[h] = read;
        for (int i = 0; i < W; i++) sum += hkc_float(read.at[i]);
    });
    const float middle = row_sum<WIDE>(sum, numbers) * share;
    each_vector<HELD>(at, n / W, [&](int64_t v, int h) {
        const floats read = hkc_floats(h >= 0 ? held[h] : from[v]);
        for (int i = 0; i < W; i++) squares += (read.at[i] - middle) * (read.at[i] - middle);
    });
    const float variance = row_sum<WIDE>(squares, numbers + 32) * share;
    const float r = 1 / sqrtf(variance + eps);
    if (at.first == 0) mean[at.row] = middle, rstd[at.row] = r;
    values *to = (values *)(y + at.row * n);
    each_vector<HELD>(at, n / W, [&](int64_t v, int h) {
        const floats read = hkc_floats(h >= 0 ? held[h] : from[v]);
        floats scale, shift, out;
        for (int i = 0; i < W; i++) scale.at[i] = 1, shift.at[i] = 0;
        if (gain) scale = ((const floats *)gain)[v];
        if (bias) shift = ((const floats *)bias)[v];
        for (int i = 0; i < W; i++)
            out.at[i] = (read.at[i] - middle) * r * scale.at[i] + shift.at[i];
        to[v] = hkc_stored<T>(out);
    });
}

template <class T, int W, bool WIDE>
__global__ void __launch_bounds__(WIDE ? WIDE_THREADS : NARROW_THREADS, 1)
    layernorm_grad(T *dx, const T *dy, const T *x, const float *mean, const float *rstd,
                   const float *gain, int64_t m, int64_t n, float share, bool add) {
    typedef hkc_vector<T, W> values;
    typedef hkc_vector<float, W> floats;
    constexpr int HELD = W == 1 ? 2 : 16 / W;
    HKC_SHARED(shared);
    float *numbers = (float *)shared;
    const place at = place_of_thread<WIDE>();
    if (at.row >= m) return;
    const values *dys = (const values *)(dy + at.row * n), *xs = (const values *)(x + at.row * n);
    const float middle = mean[at.row], r = rstd[at.row];
    floats held[HELD], held_hat[HELD]; // dy gain, xhat
    const auto gained = [&](int64_t v) {
        floats out = hkc_floats(dys[v]);
        if (!gain) return out;
        const floats scale = ((const floats *)gain)[v];
        for (int i = 0; i < W; i++) out.at[i] *= scale.at[i];
        return out;
    };
    const auto hat_of = [&](int64_t v) {
        floats out = hkc_floats(xs[v]);
        for (int i = 0; i < W; i++) out.at[i] = (out.at[i] - middle) * r;
        return out;
    };
    float sum = 0, along = 0;
    each_vector<HELD>(at, n / W, [&](int64_t v, int h) {
        const floats g = gained(v), hat = hat_of(v);
        if (h >= 0) held[h] = g, held_hat[h] = hat;
        for (int i = 0; i < W; i++) sum += g.at[i], along += g.at[i] * hat.at[i];
    });
    const float mean_g = row_sum<WIDE>(sum, numbers) * share;
    const float back = row_sum<WIDE>(along, numbers + 32) * share;
    values *to = (values *)(dx + at.row * n);
    each_vector<HELD>(at, n / W, [&](int64_t v, int h) {
        const floats g = h >= 0 ? held[h] : gained(v), hat = h >= 0 ? held_hat[h] : hat_of(v);
        floats out;
        for (int i = 0; i < W; i++) out.at[i] = 0;
        if (add) out = hkc_floats(to[v]);
        for (int i = 0; i < W; i++) out.at[i] += r * (g.at[i] - mean_g - hat.at[i] * back);
        to[v] = hkc_stored<T>(out);
    });
}

// The terms of dgain.
template <class T> struct along_hat {
    const T *dy, *x;
    const float *mean, *rstd;
    int64_t n;
    template <int W> HKC_DEVICE hkc_vector<float, W> at(int64_t i, int64_t j) const {
        const hkc_vector<float, W> d = vector_at<W>(dy, n, i, j);
        hkc_vector<float, W> out = vector_at<W>(x, n, i, j);
        for (int k = 0; k < W; k++) out.at[k] = d.at[k] * ((out.at[k] - mean[i]) * rstd[i]);
        return out;
    }
};

template <class T, int W, bool WIDE>
void launch_forward(hkc_lane *lane, T *y, float *mean, float *rstd, const T *x, const float *gain,
                    const float *bias, int64_t m, int64_t n, float eps) {
    hkc_launch(lane, (layernorm<T, W, WIDE>), row_blocks(m, WIDE), row_threads(WIDE),
               64 * sizeof(float), y, mean, rstd, x, gain, bias, m, n, 1 / (float)n, eps);
}

template <class T, int W, bool WIDE>
void launch_grad(hkc_lane *lane, T *dx, const T *dy, const T *x, const float *mean,
                 const float *rstd, const float *gain, int64_t m, int64_t n, bool add) {
    hkc_launch(lane, (layernorm_grad<T, W, WIDE>), row_blocks(m, WIDE), row_threads(WIDE),
               64 * sizeof(float), dx, dy, x, mean, rstd, gain, m, n, 1 / (float)n, add);
}

template <class T>
void forward(hkc_lane *lane, T *y, float *mean, float *rstd, const T *x, const float *gain,
             const float *bias, int64_t m, int64_t n, float eps) {
    constexpr int W = VECTOR<T>;
    const bool wide = n > NARROW, vectors = as_vectors<W>(n, y, x, gain, bias);
    const auto launch = vectors ? (wide ? launch_forward<T, W, true> : launch_forward<T, W, false>)
                                : (wide ? launch_forward<T, 1, true> : launch_forward<T, 1, false>);
    launch(lane, y, mean, rstd, x, gain, bias, m, n, eps);
}

template <class T>
void backward(hkc_lane *lane, T *dx, float *dgain, float *dbias, const T *dy, const T *x,
              const float *mean, const float *rstd, const float *gain, int64_t m, int64_t n,
              hk_write dx_write, hk_write dparam_write) {
    constexpr int W = VECTOR<T>;
    const bool wide = n > NARROW, vectors = as_vectors<W>(n, dx, dy, x, gain);
    const auto launch = vectors ? (wide ? launch_grad<T, W, true> : launch_grad<T, W, false>)
                                : (wide ? launch_grad<T, 1, true> : launch_grad<T, 1, false>);
    launch(lane, dx, dy, x, mean, rstd, gain, m, n, dx_write == HK_ADD);
    const bool add = dparam_write == HK_ADD;
    if (dgain) column_sums(lane, dgain, along_hat<T>{dy, x, mean, rstd, n}, m, n, add, dy, x);
    if (dbias) column_sums(lane, dbias, elements<T>{dy, n}, m, n, add, dy);
}

} // namespace

extern "C" void hkc_layernorm_f32(struct hkc_lane *lane, float *y, float *mean, float *rstd,
                                  const float *x, const float *gain, const float *bias, int64_t m,
                                  int64_t n, double eps) {
    forward(lane, y, mean, rstd, x, gain, bias, m, n, (float)eps);
}

extern "C" void hkc_layernorm_bf16(struct hkc_lane *lane, hk_bf16 *y, float *mean, float *rstd,
                                   const hk_bf16 *x, const float *gain, const float *bias,
                                   int64_t m, int64_t n, double eps) {
    forward(lane, hkc_values(y), mean, rstd, hkc_values(x), gain, bias, m, n, (float)eps);
}

extern "C" void hkc_layernorm_grad_f32(struct hkc_lane *lane, float *dx, float *dgain, float *dbias,
                                       const float *dy, const float *x, const float *mean,
                                       const float *rstd, const float *gain, int64_t m, int64_t n,
                                       enum hk_write dx_write, enum hk_write dparam_write) {
    backward(lane, dx, dgain, dbias, dy, x, mean, rstd, gain, m, n, dx_write, dparam_write);
}

extern "C" void hkc_layernorm_grad_bf16(struct hkc_lane *lane, hk_bf16 *dx, float *dgain,
                                        float *dbias, const hk_bf16 *dy, const hk_bf16 *x,
                                        const float *mean, const float *rstd, const float *gain,
                                        int64_t m, int64_t n, enum hk_write dx_write,
                                        enum hk_write dparam_write) {
    backward(lane, hkc_values(dx), dgain, dbias, hkc_values(dy), hkc_values(x), mean, rstd, gain, m,
             n, dx_write, dparam_write);
}
