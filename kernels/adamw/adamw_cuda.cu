// CUDA twin of adamw: bound by memory, 32 bytes for an element and 2 for its copy, so everything happens in one pass.
// The rule is read when the launcher is called.
#include "kernels/adamw/adamw.h"

#include <math.h>

#include "kernels/bf16.h"
#include "kernels/cuda/rows.h"

namespace {

using namespace hkc;

// The rule in the arrays' precision.
struct factors {
    float beta1, rest1, beta2, rest2, grad_scale, eps, keep, step, spread;
};

factors factors_of(const hk_adamw_rule &rule) {
    factors f;
    f.beta1 = (float)rule.beta1;
    f.rest1 = (float)(1 - rule.beta1);
    f.beta2 = (float)rule.beta2;
    f.rest2 = (float)(1 - rule.beta2);
    f.grad_scale = (float)rule.grad_scale;
    f.eps = (float)rule.eps;
    f.keep = (float)(1 - rule.lr * rule.decay);
    f.step = (float)(rule.lr / rule.correction1);
    f.spread = (float)(1 / sqrt(rule.correction2));
    return f;
}

// `rounded` is NULL without a copy.
template <int W>
__global__ void __launch_bounds__(WIDE_THREADS)
    adamw(float *param, hk_bf16 *rounded, float *grad, float *mean, float *variance,
          int64_t vectors, factors f, const hk_clipped *clipped) {
    typedef hkc_vector<float, W> values;
    const int64_t v = (int64_t)blockIdx.x * WIDE_THREADS + threadIdx.x;
    if (v >= vectors) return;
    if (clipped) {
        if (clipped->stopped == HK_STEP_SKIPPED) ((values *)grad)[v] = {};
        if (clipped->stopped) return;
        f.grad_scale *= (float)clipped->scale;
    }
    values p = ((values *)param)[v], g = ((values *)grad)[v];
    values m = ((values *)mean)[v], s = ((values *)variance)[v];
    for (int i = 0; i < W; i++) {
        const float scaled = f.grad_scale * g.at[i];
        m.at[i] = f.beta1 * m.at[i] + f.rest1 * scaled;
        s.at[i] = f.beta2 * s.at[i] + f.rest2 * (scaled * scaled);
        p.at[i] = f.keep * p.at[i] - f.step * (m.at[i] / (f.spread * sqrtf(s.at[i]) + f.eps));
        g.at[i] = 0;
    }
    ((values *)param)[v] = p;
    if (rounded) {
        hkc_vector<hk_bf16, W> copy;
        for (int i = 0; i < W; i++) copy.at[i] = hk_bf16_round(p.at[i]);
        ((hkc_vector<hk_bf16, W> *)rounded)[v] = copy;
    }
    ((values *)grad)[v] = g;
    ((values *)mean)[v] = m;
    ((values *)variance)[v] = s;
}

void launch(hkc_lane *lane, float *param, hk_bf16 *rounded, float *grad, float *mean,
            float *variance, int64_t count, const hk_adamw_rule *rule) {
    const factors f = factors_of(*rule);
    if (as_vectors(count, param, rounded, grad, mean, variance)) {
        hkc_launch(lane, adamw<4>, blocks_of(count / 4, WIDE_THREADS), WIDE_THREADS, 0, param,
                   rounded, grad, mean, variance, count / 4, f, rule->clipped);
    } else {
        hkc_launch(lane, adamw<1>, blocks_of(count, WIDE_THREADS), WIDE_THREADS, 0, param, rounded,
                   grad, mean, variance, count, f, rule->clipped);
    }
}

} // namespace

extern "C" void hkc_adamw_f32(struct hkc_lane *lane, float *param, float *grad, float *mean,
                              float *variance, int64_t count, const struct hk_adamw_rule *rule) {
    launch(lane, param, NULL, grad, mean, variance, count, rule);
}

extern "C" void hkc_adamw_rounded_f32(struct hkc_lane *lane, float *param, hk_bf16 *rounded,
                                      float *grad, float *mean, float *variance, int64_t count,
                                      enum hk_layout layout, const struct hk_adamw_rule *rule) {
    assert(layout == HK_ROWS);
    (void)layout;
    launch(lane, param, rounded, grad, mean, variance, count, rule);
}
