// CPU twin of muon: bound by memory, one pass each.
#include "kernels/muon/muon.h"

#include "kernels/cpu/real.h"

// Arrays below this are one thread's: waking the others would take longer.
enum { shared_min = 16384 };

// Over all elements i, by all threads where there are many.
#define EACH(statement)                                                                            \
    if (count < shared_min) {                                                                      \
        _Pragma("omp simd") for (int64_t i = 0; i < count; i++) statement;                         \
    } else {                                                                                       \
        _Pragma("omp parallel for simd schedule(static)") for (int64_t i = 0; i < count; i++)      \
            statement;                                                                             \
    }

static bool is_stopped(const struct hk_muon_rule *rule) {
    return rule->clipped && rule->clipped->stopped != HK_STEP_TAKEN;
}

HK_KERNEL(void, muon_look_ahead,
          (real * gradient, real *momentum, int64_t count, const struct hk_muon_rule *rule),
          (gradient, momentum, count, rule), HK_PASS(4 * count, 0, "count", count)) {
    const real share = (real)rule->momentum;
    const real scale =
        (real)(rule->clipped ? rule->grad_scale * rule->clipped->scale : rule->grad_scale);
    if (is_stopped(rule)) {
        if (rule->clipped->stopped == HK_STEP_SKIPPED)
            memset(gradient, 0, (size_t)count * sizeof *gradient);
        return;
    }
    EACH({
        const real g = gradient[i] * scale;
        const real m = share * momentum[i] + g;
        momentum[i] = m;
        gradient[i] = g + share * m;
    })
}

HK_KERNEL(void, muon_normalize,
          (real * x, const double *squares, double eps, int64_t count, int64_t arrays),
          (x, squares, eps, count, arrays), HK_PASS(2 * count * arrays, 0, "count", count)) {
    for (int64_t a = 0; a < arrays; a++, x += count) {
        const real factor = (real)(1 / (sqrt(squares[a]) + eps));
        EACH(x[i] *= factor)
    }
}

HK_KERNEL(void, muon_blend, (real * x, double factor, const real *y, double more, int64_t count),
          (x, factor, y, more, count), HK_PASS(3 * count, 0, "count", count)) {
    const real a = (real)factor, b = (real)more;
    EACH(x[i] = a * x[i] + b * y[i])
}

HK_KERNEL(void, muon_move,
          (real *const *value, const real *x, double size, int64_t count, int64_t stride,
           int64_t arrays, const struct hk_muon_rule *rule),
          (value, x, size, count, stride, arrays, rule),
          HK_PASS(3 * count * arrays, 0, "count", count)) {
    const real keep = (real)(1 - rule->lr * rule->decay), step = (real)(rule->lr * size);
    if (is_stopped(rule)) return;
    for (int64_t a = 0; a < arrays; a++, x += stride) {
        real *own = value[a];
        EACH(own[i] = keep * own[i] - step * x[i])
    }
}
