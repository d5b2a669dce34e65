// CPU twin of adamw: bound by memory, so everything happens in the one pass.
#include "kernels/adamw/adamw.h"

#include <omp.h>

#include "kernels/cpu/real.h"

// The rule in the arrays' precision.
struct factors {
    real beta1, rest1, beta2, rest2, grad_scale, eps, keep, step, spread;
};

struct arrays {
    real *param, *grad, *mean, *variance;
};

// Arrays below this are one thread's: waking the others would take longer. (A parallel region for one
// thread would not do: OpenMP then makes a team of one, and anew the one of all.)
enum { shared_min = 16384 };

static struct factors factors_of(const struct hk_adamw_rule *rule) {
    return (struct factors){
        .beta1 = (real)rule->beta1,
        .rest1 = (real)(1 - rule->beta1),
        .beta2 = (real)rule->beta2,
        .rest2 = (real)(1 - rule->beta2),
        .grad_scale =
            (real)(rule->clipped ? rule->grad_scale * rule->clipped->scale : rule->grad_scale),
        .eps = (real)rule->eps,
        .keep = (real)(1 - rule->lr * rule->decay),
        .step = (real)(rule->lr / rule->correction1),
        .spread = (real)(1 / sqrt(rule->correction2)),
    };
}

// Returns the parameter.
HK_INLINE real update(struct arrays x, int64_t i, struct factors f) {
    const real g = f.grad_scale * x.grad[i];
    const real m = f.beta1 * x.mean[i] + f.rest1 * g;
    const real v = f.beta2 * x.variance[i] + f.rest2 * (g * g);
    const real p = f.keep * x.param[i] - f.step * (m / (f.spread * (real)sqrt(v) + f.eps));
    x.mean[i] = m;
    x.variance[i] = v;
    x.param[i] = p;
    x.grad[i] = 0;
    return p;
}

// This thread's part of `count` elements, in whole units of `unit`.
struct part {
    int64_t begin, end;
};

HK_INLINE struct part part_of(int64_t count, int64_t unit) {
    const int64_t units = (count + unit - 1) / unit;
    const int64_t thread = omp_get_thread_num(), threads = omp_get_num_threads();
    const int64_t end = units * (thread + 1) / threads * unit;
    return (struct part){units * thread / threads * unit, end < count ? end : count};
}

static void update_part(struct arrays x, struct part part, struct factors f) {
#pragma omp simd
    for (int64_t i = part.begin; i < part.end; i++) update(x, i, f);
}

// Whether the step changes no parameter.
static bool is_left(const struct hk_adamw_rule *rule, real *grad, int64_t count) {
    if (!rule->clipped || rule->clipped->stopped == HK_STEP_TAKEN) return false;
    if (rule->clipped->stopped == HK_STEP_SKIPPED) memset(grad, 0, (size_t)count * sizeof *grad);
    return true;
}

HK_KERNEL(void, adamw,
          (real * param, real *grad, real *mean, real *variance, int64_t count,
           const struct hk_adamw_rule *rule),
          (param, grad, mean, variance, count, rule), HK_PASS(8 * count, 0, "count", count)) {
    if (is_left(rule, grad, count)) return;
    const struct factors f = factors_of(rule);
    const struct arrays x = {param, grad, mean, variance};
    if (count < shared_min) {
        update_part(x, (struct part){0, count}, f);
        return;
    }
#pragma omp parallel
    update_part(x, part_of(count, HK_PANEL), f);
}

#if HK_BITS == 32

// Two rows of a panel become one of pairs.
enum { two_rows = 2 * HK_PANEL };

static void update_rows(struct arrays x, hk_bf16 *rounded, struct part part, struct factors f) {
#pragma omp simd
    for (int64_t i = part.begin; i < part.end; i++) rounded[i] = hk_bf16_round(update(x, i, f));
}

static void update_pairs(struct arrays x, hk_bf16 *rounded, struct part part, struct factors f) {
    for (int64_t row = part.begin; row < part.end; row += two_rows) {
        // Beside the arrays, so that the compiler sees that they do not overlap.
        uint32_t pairs[HK_PANEL];
#pragma omp simd
        for (int64_t j = 0; j < HK_PANEL; j++) {
            const uint32_t low = hk_bf16_round(update(x, row + j, f)).bits;
            const uint32_t high = hk_bf16_round(update(x, row + HK_PANEL + j, f)).bits;
            pairs[j] = low | high << 16;
        }
        memcpy(rounded + row, pairs, sizeof pairs);
    }
}

HK_KERNEL(void, adamw_rounded,
          (float *param, hk_bf16 *rounded, float *grad, float *mean, float *variance, int64_t count,
           enum hk_layout layout, const struct hk_adamw_rule *rule),
          (param, rounded, grad, mean, variance, count, layout, rule),
          HK_PASS(8 * count + count / 2, 0, "count", count)) {
    if (is_left(rule, grad, count)) return;
    const struct factors f = factors_of(rule);
    const struct arrays x = {param, grad, mean, variance};
    void (*const update_some)(struct arrays, hk_bf16 *, struct part, struct factors) =
        layout == HK_ROWS ? update_rows : update_pairs;
    assert(layout == HK_ROWS || count % two_rows == 0);
    if (count < shared_min) {
        update_some(x, rounded, (struct part){0, count}, f);
        return;
    }
#pragma omp parallel
    update_some(x, rounded, part_of(count, two_rows), f);
}

#endif
