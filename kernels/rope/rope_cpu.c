// CPU twin of rope. The gradient is the rotation by the opposite angle.
#include "kernels/rope/rope.h"

#include "kernels/cpu/real.h"

// Where in the ramp from `low` to `high` a value is: 0 to 1.
static double share_of(const struct hk_rope_rule *rule, double value) {
    if (value <= rule->low) return 0;
    return value >= rule->high ? 1 : (value - rule->low) / (rule->high - rule->low);
}

static double frequency(const struct hk_rope_rule *rule, int64_t j, int64_t width) {
    const double plain = pow(rule->theta, -2.0 * (double)j / (double)width);
    if (rule->factor == 0) return plain;
    const double ramp = rule->original > 0 ? 1 - share_of(rule, plain * rule->original / (2 * M_PI))
                                           : share_of(rule, (double)j);
    return plain * (ramp / rule->factor + (1 - ramp));
}

HK_KERNEL(void, rope_table,
          (real * table, int64_t first, int64_t positions, int64_t width, struct hk_rope_rule rule),
          (table, first, positions, width, rule),
          HK_PASS(positions *width, 0, "positions width", positions, width)) {
    assert(width % 2 == 0);
    const int64_t half = width / 2;
    const double amplitude = rule.factor == 0 ? 1 : rule.amplitude;
#pragma omp parallel for schedule(static)
    for (int64_t p = 0; p < positions; p++) {
        real *cosines = table + p * width, *sines = cosines + half;
        for (int64_t j = 0; j < half; j++) {
            const double angle = (double)(first + p) * frequency(&rule, j, width);
            cosines[j] = (real)(amplitude * cos(angle));
            sines[j] = (real)(amplitude * sin(angle));
        }
    }
}

// One head. `direction` is 1 forward, -1 back. Pair j is (j, j + half).
static void rotate_halves(real *to, const real *from, const real *cosines, int64_t half,
                          real direction, enum hk_write write) {
    const real *sines = cosines + half;
#pragma omp simd
    for (int64_t j = 0; j < half; j++) {
        const real c = cosines[j], s = direction * sines[j];
        const real low = from[j], high = from[j + half];
        to[j] = (write == HK_ADD ? to[j] : 0) + (low * c - high * s);
        to[j + half] = (write == HK_ADD ? to[j + half] : 0) + (high * c + low * s);
    }
}

// Pair j is (2 j, 2 j + 1).
static void rotate_neighbours(real *to, const real *from, const real *cosines, int64_t half,
                              real direction, enum hk_write write) {
    const real *sines = cosines + half;
#pragma omp simd
    for (int64_t j = 0; j < half; j++) {
        const real c = cosines[j], s = direction * sines[j];
        const real low = from[2 * j], high = from[2 * j + 1];
        to[2 * j] = (write == HK_ADD ? to[2 * j] : 0) + (low * c - high * s);
        to[2 * j + 1] = (write == HK_ADD ? to[2 * j + 1] : 0) + (high * c + low * s);
    }
}

static void rotate(real *y, const real *x, const real *table, struct hk_rope_dims dims,
                   real direction, enum hk_write write) {
    assert(dims.width % 2 == 0);
    const int64_t half = dims.width / 2;
#pragma omp parallel for schedule(static) collapse(2)
    for (int64_t b = 0; b < dims.batch; b++) {
        for (int64_t p = 0; p < dims.positions; p++) {
            const real *cosines = table + p * dims.width;
            for (int64_t h = 0; h < dims.heads; h++) {
                const int64_t at = ((b * dims.positions + p) * dims.heads + h) * dims.width;
                if (dims.interleaved)
                    rotate_neighbours(y + at, x + at, cosines, half, direction, write);
                else
                    rotate_halves(y + at, x + at, cosines, half, direction, write);
            }
        }
    }
}

HK_KERNEL(void, rope, (real * y, const real *x, const real *table, struct hk_rope_dims dims),
          (y, x, table, dims),
          HK_PASS(2 * dims.batch * dims.positions * dims.heads * dims.width, 0,
                  "batch positions heads width", dims.batch, dims.positions, dims.heads,
                  dims.width)) {
    rotate(y, x, table, dims, 1, HK_STORE);
}

HK_KERNEL(void, rope_grad,
          (real * dx, const real *dy, const real *table, struct hk_rope_dims dims,
           enum hk_write write),
          (dx, dy, table, dims, write),
          HK_PASS(dims.batch *dims.positions *dims.heads *dims.width +
                      HK_WRITTEN(dims.batch * dims.positions * dims.heads * dims.width, write),
                  0, "batch positions heads width", dims.batch, dims.positions, dims.heads,
                  dims.width)) {
    rotate(dx, dy, table, dims, -1, write);
}
