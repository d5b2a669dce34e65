// CPU twin of causal_conv. A thread has a strip of channels of a sequence at a time, whose weights it turns so that
// taps are rows; for the gradient of the weights it has strips of all sequences, whose terms are summed in double
// across blocks of positions.
#include "kernels/causal_conv/causal_conv.h"

#include "kernels/cpu/row.h"

enum { strip = 64, taps_at_once = 8, block = 256 };

// Positions before t that the document of t has.
static int64_t seen(const struct hk_conv_dims *d, int64_t b, int64_t t) {
    return d->begins ? t - d->begins[b * d->positions + t] : t;
}

// turned[j][c] = w[c][j] of these taps and channels.
static void turn(real turned[taps_at_once][strip], const real *w, const struct hk_conv_dims *d,
                 int64_t channel, int64_t count, int64_t tap, int64_t taps) {
    for (int64_t j = 0; j < taps; j++) {
        for (int64_t c = 0; c < count; c++) turned[j][c] = w[(channel + c) * d->taps + tap + j];
    }
}

// to[c] += w[c] x[c]
HK_INLINE void add_products(real *to, const real *w, const real *x, int64_t count) {
#pragma omp simd
    for (int64_t c = 0; c < count; c++) to[c] += w[c] * x[c];
}

// One strip of a sequence, forward.
static void convolve(real *y, const real *x, const real *w, const struct hk_conv_dims *d, int64_t b,
                     int64_t channel, int64_t count) {
    real turned[taps_at_once][strip];
    for (int64_t tap = 0; tap < d->taps; tap += taps_at_once) {
        const int64_t taps = d->taps - tap < taps_at_once ? d->taps - tap : taps_at_once;
        turn(turned, w, d, channel, count, tap, taps);
        for (int64_t t = 0; t < d->positions; t++) {
            const int64_t at = (b * d->positions + t) * d->channels + channel;
            const int64_t before = seen(d, b, t);
            if (tap == 0) memset(y + at, 0, (size_t)count * sizeof *y);
            for (int64_t j = 0; j < taps; j++) {
                const int64_t back = d->taps - 1 - tap - j;
                if (back <= before)
                    add_products(y + at, turned[j], x + at - back * d->channels, count);
            }
        }
    }
}

HK_KERNEL(void, causal_conv, (real * y, const real *x, const real *w, struct hk_conv_dims dims),
          (y, x, w, dims),
          HK_PASS(2 * dims.batch * dims.positions * dims.channels + dims.channels * dims.taps, 0,
                  "batch positions channels taps", dims.batch, dims.positions, dims.channels,
                  dims.taps)) {
    const int64_t strips = (dims.channels + strip - 1) / strip;
#pragma omp parallel for schedule(static) collapse(2)
    for (int64_t b = 0; b < dims.batch; b++) {
        for (int64_t s = 0; s < strips; s++) {
            const int64_t rest = dims.channels - s * strip;
            convolve(y, x, w, &dims, b, s * strip, rest < strip ? rest : strip);
        }
    }
}

// One strip of a sequence: the gradient by x, of the positions ahead that have seen each.
static void convolve_back(real *dx, const real *dy, const real *w, const struct hk_conv_dims *d,
                          int64_t b, int64_t channel, int64_t count, enum hk_write write) {
    real turned[taps_at_once][strip], sum[strip];
    for (int64_t tap = 0; tap < d->taps; tap += taps_at_once) {
        const int64_t taps = d->taps - tap < taps_at_once ? d->taps - tap : taps_at_once;
        turn(turned, w, d, channel, count, tap, taps);
        for (int64_t t = 0; t < d->positions; t++) {
            const int64_t at = (b * d->positions + t) * d->channels + channel;
            memset(sum, 0, sizeof sum);
            for (int64_t j = 0; j < taps; j++) {
                const int64_t ahead = d->taps - 1 - tap - j;
                if (t + ahead < d->positions && seen(d, b, t + ahead) >= ahead)
                    add_products(sum, turned[j], dy + at + ahead * d->channels, count);
            }
            strip_write(dx + at, sum, count, tap == 0 ? write : HK_ADD);
        }
    }
}

// The gradient by tap j of a strip of channels.
static void correlate(real *dw, const real *dy, const real *x, const struct hk_conv_dims *d,
                      int64_t j, int64_t channel, int64_t count, enum hk_write write) {
    const int64_t back = d->taps - 1 - j;
    double total[strip] = {0};
    for (int64_t b = 0; b < d->batch; b++) {
        for (int64_t begin = 0; begin < d->positions; begin += block) {
            const int64_t end = d->positions - begin < block ? d->positions : begin + block;
            real sum[strip] = {0};
            for (int64_t t = begin; t < end; t++) {
                const int64_t at = (b * d->positions + t) * d->channels + channel;
                if (seen(d, b, t) >= back)
                    add_products(sum, dy + at, x + at - back * d->channels, count);
            }
            for (int64_t c = 0; c < count; c++) total[c] += sum[c];
        }
    }
    for (int64_t c = 0; c < count; c++) {
        real *to = dw + (channel + c) * d->taps + j;
        *to = (write == HK_ADD ? *to : 0) + (real)total[c];
    }
}

HK_KERNEL(void, causal_conv_grad,
          (real * dx, real *dw, const real *dy, const real *x, const real *w,
           struct hk_conv_dims dims, enum hk_write write_x, enum hk_write write_w),
          (dx, dw, dy, x, w, dims, write_x, write_w),
          HK_PASS(2 * dims.batch * dims.positions * dims.channels +
                      HK_WRITTEN(dims.batch * dims.positions * dims.channels, write_x) +
                      HK_WRITTEN(dims.channels * dims.taps, write_w),
                  0, "batch positions channels taps", dims.batch, dims.positions, dims.channels,
                  dims.taps)) {
    const int64_t strips = (dims.channels + strip - 1) / strip;
#pragma omp parallel for schedule(static) collapse(2)
    for (int64_t b = 0; b < dims.batch; b++) {
        for (int64_t s = 0; s < strips; s++) {
            const int64_t rest = dims.channels - s * strip;
            convolve_back(dx, dy, w, &dims, b, s * strip, rest < strip ? rest : strip, write_x);
        }
    }
#pragma omp parallel for schedule(static) collapse(2)
    for (int64_t s = 0; s < strips; s++) {
        for (int64_t j = 0; j < dims.taps; j++) {
            const int64_t rest = dims.channels - s * strip;
            correlate(dw, dy, x, &dims, j, s * strip, rest < strip ? rest : strip, write_w);
        }
    }
}
