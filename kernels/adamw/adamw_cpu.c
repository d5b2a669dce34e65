// CPU twin of adamw: bound by memory, so everything happens in the one pass.
#include "kernels/adamw/adamw.h"

#include "kernels/cpu/real.h"

// The rule in the arrays' precision.
struct factors {
    real beta1, rest1, beta2, rest2, grad_scale, eps, keep, step, spread;
};

// Arrays below this are one thread's: waking the others would take longer.
enum { shared_min = 16384 };

static struct factors factors_of(const struct hk_adamw_rule *rule) {
    return (struct factors){
        .beta1 = (real)rule->beta1,
        .rest1 = (real)(1 - rule->beta1),
        .beta2 = (real)rule->beta2,
        .rest2 = (real)(1 - rule->beta2),
        .grad_scale = (real)rule->grad_scale,
        .eps = (real)rule->eps,
        .keep = (real)(1 - rule->lr * rule->decay),
        .step = (real)(rule->lr / rule->correction1),
        .spread = (real)(1 / sqrt(rule->correction2)),
    };
}

// Returns the parameter.
HK_INLINE real update(real *param, real *grad, real *mean, real *variance, int64_t i,
                      struct factors f) {
    const real g = f.grad_scale * grad[i];
    const real m = f.beta1 * mean[i] + f.rest1 * g;
    const real v = f.beta2 * variance[i] + f.rest2 * (g * g);
    const real p = f.keep * param[i] - f.step * (m / (f.spread * (real)sqrt(v) + f.eps));
    mean[i] = m;
    variance[i] = v;
    param[i] = p;
    grad[i] = 0;
    return p;
}

HK_KERNEL(void, adamw,
          (real * param, real *grad, real *mean, real *variance, int64_t count,
           const struct hk_adamw_rule *rule),
          (param, grad, mean, variance, count, rule), HK_PASS(8 * count, 0, "count", count)) {
    const struct factors f = factors_of(rule);
#pragma omp parallel for simd schedule(static) if (count >= shared_min)
    for (int64_t i = 0; i < count; i++) update(param, grad, mean, variance, i, f);
}

#if HK_BITS == 32

// Two rows of a panel become one of pairs.
enum { two_rows = 2 * HK_PANEL };

HK_KERNEL(void, adamw_rounded,
          (float *param, hk_bf16 *rounded, float *grad, float *mean, float *variance, int64_t count,
           enum hk_layout layout, const struct hk_adamw_rule *rule),
          (param, rounded, grad, mean, variance, count, layout, rule),
          HK_PASS(8 * count + count / 2, 0, "count", count)) {
    const struct factors f = factors_of(rule);
    if (layout == HK_ROWS) {
#pragma omp parallel for simd schedule(static) if (count >= shared_min)
        for (int64_t i = 0; i < count; i++) {
            rounded[i] = hk_bf16_round(update(param, grad, mean, variance, i, f));
        }
        return;
    }
    assert(count % two_rows == 0);
#pragma omp parallel for schedule(static) if (count >= shared_min)
    for (int64_t row = 0; row < count; row += two_rows) {
        // Beside the arrays, so that the compiler sees that they do not overlap.
        uint32_t pairs[HK_PANEL];
#pragma omp simd
        for (int64_t j = 0; j < HK_PANEL; j++) {
            const uint32_t low =
                hk_bf16_round(update(param, grad, mean, variance, row + j, f)).bits;
            const uint32_t high =
                hk_bf16_round(update(param, grad, mean, variance, row + HK_PANEL + j, f)).bits;
            pairs[j] = low | high << 16;
        }
        memcpy(rounded + row, pairs, sizeof pairs);
    }
}

#endif
