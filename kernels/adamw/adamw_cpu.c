// CPU twin of adamw: bound by memory, so everything happens in the one pass.
#include "kernels/adamw/adamw.h"

#include "kernels/cpu/real.h"

HK_KERNEL(void, adamw,
          (real * param, real *grad, real *mean, real *variance, int64_t count,
           const struct hk_adamw_rule *rule),
          (param, grad, mean, variance, count, rule), HK_PASS(8 * count, 0, "count", count)) {
    const real beta1 = (real)rule->beta1, rest1 = (real)(1 - rule->beta1);
    const real beta2 = (real)rule->beta2, rest2 = (real)(1 - rule->beta2);
    const real grad_scale = (real)rule->grad_scale, eps = (real)rule->eps;
    const real keep = (real)(1 - rule->lr * rule->decay);
    const real step = (real)(rule->lr / rule->correction1);
    const real spread = (real)(1 / sqrt(rule->correction2));
#pragma omp parallel for simd schedule(static)
    for (int64_t i = 0; i < count; i++) {
        const real g = grad_scale * grad[i];
        const real m = beta1 * mean[i] + rest1 * g;
        const real v = beta2 * variance[i] + rest2 * (g * g);
        mean[i] = m;
        variance[i] = v;
        param[i] = keep * param[i] - step * (m / (spread * (real)sqrt(v) + eps));
        grad[i] = 0;
    }
}
