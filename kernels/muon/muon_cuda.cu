// CUDA twin of muon: bound by memory, one pass each.
// The rule is read when the launcher is called, the targets of `clipped` and `squares` when the kernel runs. A row of
// blocks for each of several arrays.
#include "kernels/muon/muon.h"

#include "kernels/cuda/rows.h"

namespace {

using namespace hkc;

// The thread's vector; false: there is none.
HKC_DEVICE bool find_vector(int64_t vectors, int64_t *v) {
    *v = (int64_t)blockIdx.x * WIDE_THREADS + threadIdx.x;
    return *v < vectors;
}

template <int W>
__global__ void __launch_bounds__(WIDE_THREADS)
    look_ahead(float *gradient, float *momentum, int64_t vectors, float share, float scale,
               const hk_clipped *clipped) {
    typedef hkc_vector<float, W> values;
    int64_t v;
    if (!find_vector(vectors, &v)) return;
    if (clipped) {
        if (clipped->stopped == HK_STEP_SKIPPED) ((values *)gradient)[v] = {};
        if (clipped->stopped) return;
        scale *= (float)clipped->scale;
    }
    values g = ((values *)gradient)[v], m = ((values *)momentum)[v];
    for (int i = 0; i < W; i++) {
        const float scaled = g.at[i] * scale;
        m.at[i] = share * m.at[i] + scaled;
        g.at[i] = scaled + share * m.at[i];
    }
    ((values *)gradient)[v] = g;
    ((values *)momentum)[v] = m;
}

template <int W>
__global__ void __launch_bounds__(WIDE_THREADS)
    normalize(float *x, const double *squares, double eps, int64_t vectors) {
    typedef hkc_vector<float, W> values;
    int64_t v;
    if (!find_vector(vectors, &v)) return;
    const float factor = (float)(1 / (sqrt(squares[blockIdx.y]) + eps));
    v += blockIdx.y * vectors;
    values all = ((values *)x)[v];
    for (int i = 0; i < W; i++) all.at[i] *= factor;
    ((values *)x)[v] = all;
}

// x = a x + b y
template <int W>
HKC_DEVICE void blend_vector(float *x, float a, const float *y, float b, int64_t v) {
    typedef hkc_vector<float, W> values;
    values all = ((values *)x)[v];
    const values other = ((const values *)y)[v];
    for (int i = 0; i < W; i++) all.at[i] = a * all.at[i] + b * other.at[i];
    ((values *)x)[v] = all;
}

template <int W>
__global__ void __launch_bounds__(WIDE_THREADS)
    blend(float *x, float a, const float *y, float b, int64_t vectors) {
    int64_t v;
    if (find_vector(vectors, &v)) blend_vector<W>(x, a, y, b, v);
}

struct places {
    float *at[HK_MUON_ARRAYS];
};

// Unless `clipped` has stopped.
template <int W>
__global__ void __launch_bounds__(WIDE_THREADS)
    move(places value, float a, const float *x, float b, int64_t vectors, int64_t stride,
         const hk_clipped *clipped) {
    int64_t v;
    if (!find_vector(vectors, &v)) return;
    if (clipped && clipped->stopped) return;
    blend_vector<W>(value.at[blockIdx.y], a, x + blockIdx.y * stride, b, v);
}

} // namespace

extern "C" void hkc_muon_look_ahead_f32(struct hkc_lane *lane, float *gradient, float *momentum,
                                        int64_t count, const struct hk_muon_rule *rule) {
    const bool wide = as_vectors(count, gradient, momentum);
    const int64_t vectors = wide ? count / 4 : count;
    hkc_launch(lane, wide ? look_ahead<4> : look_ahead<1>, blocks_of(vectors, WIDE_THREADS),
               WIDE_THREADS, 0, gradient, momentum, vectors, (float)rule->momentum,
               (float)rule->grad_scale, rule->clipped);
}

extern "C" void hkc_muon_normalize_f32(struct hkc_lane *lane, float *x, const double *squares,
                                       double eps, int64_t count, int64_t arrays) {
    const bool wide = as_vectors(count, x);
    const int64_t vectors = wide ? count / 4 : count;
    hkc_launch(lane, wide ? normalize<4> : normalize<1>,
               dim3(blocks_of(vectors, WIDE_THREADS), (unsigned)arrays), WIDE_THREADS, 0, x,
               squares, eps, vectors);
}

extern "C" void hkc_muon_blend_f32(struct hkc_lane *lane, float *x, double factor, const float *y,
                                   double more, int64_t count) {
    const bool wide = as_vectors(count, x, y);
    const int64_t vectors = wide ? count / 4 : count;
    hkc_launch(lane, wide ? blend<4> : blend<1>, blocks_of(vectors, WIDE_THREADS), WIDE_THREADS, 0,
               x, (float)factor, y, (float)more, vectors);
}

extern "C" void hkc_muon_move_f32(struct hkc_lane *lane, float *const *value, const float *x,
                                  double size, int64_t count, int64_t stride, int64_t arrays,
                                  const struct hk_muon_rule *rule) {
    places all = {};
    assert(arrays <= HK_MUON_ARRAYS);
    bool wide = as_vectors(count, x) && stride % 4 == 0;
    for (int64_t a = 0; a < arrays; a++) {
        all.at[a] = value[a];
        wide = wide && as_vectors(count, value[a]);
    }
    const int64_t vectors = wide ? count / 4 : count;
    hkc_launch(lane, wide ? move<4> : move<1>,
               dim3(blocks_of(vectors, WIDE_THREADS), (unsigned)arrays), WIDE_THREADS, 0, all,
               (float)(1 - rule->lr * rule->decay), x, -(float)(rule->lr * size), vectors, stride,
               rule->clipped);
}
