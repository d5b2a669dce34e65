// CPU twins of the movements by a route.
#include "kernels/route/route.h"

#include "kernels/cpu/real.h"

HK_KERNEL(void, permute,
          (real * rows, const real *x, const int32_t *pair, int64_t tokens, int64_t topk,
           int64_t width),
          (rows, x, pair, tokens, topk, width),
          HK_PASS((topk + 1) * tokens * width, tokens *topk, "tokens topk width", tokens, topk,
                  width)) {
#pragma omp parallel for schedule(static)
    for (int64_t r = 0; r < tokens * topk; r++) {
        memcpy(rows + r * width, x + pair[r] / topk * width, (size_t)width * sizeof *rows);
    }
}

HK_KERNEL(void, combine,
          (real * y, const real *rows, const int32_t *slot, int64_t tokens, int64_t topk,
           int64_t width, enum hk_write write),
          (y, rows, slot, tokens, topk, width, write),
          HK_PASS(topk *tokens *width + HK_WRITTEN(tokens * width, write), tokens *topk,
                  "tokens topk width", tokens, topk, width)) {
    enum { strip = 256 }; // The sum stays in the first-level cache.
#pragma omp parallel for schedule(static)
    for (int64_t t = 0; t < tokens; t++) {
        for (int64_t begin = 0; begin < width; begin += strip) {
            const int64_t count = width - begin < strip ? width - begin : strip;
            real sum[strip] = {0};
            for (int64_t j = 0; j < topk; j++) {
                const int64_t r = slot[t * topk + j];
                if (r < 0) continue;
                const real *from = rows + r * width + begin;
#pragma omp simd
                for (int64_t c = 0; c < count; c++) sum[c] += from[c];
            }
            real *to = y + t * width + begin;
#pragma omp simd
            for (int64_t c = 0; c < count; c++) to[c] = (write == HK_ADD ? to[c] : 0) + sum[c];
        }
    }
}

HK_KERNEL(void, gate_rows, (real * g, const real *weights, const int32_t *pair, int64_t count),
          (g, weights, pair, count), HK_PASS(2 * count, count, "~count", count)) {
#pragma omp parallel for schedule(static)
    for (int64_t r = 0; r < count; r++) g[r] = weights[pair[r]];
}

HK_KERNEL(void, gate_rows_grad,
          (real * dweights, const real *dg, const int32_t *slot, int64_t count),
          (dweights, dg, slot, count), HK_PASS(2 * count, count, "~count", count)) {
#pragma omp parallel for schedule(static)
    for (int64_t p = 0; p < count; p++) dweights[p] = slot[p] < 0 ? 0 : dg[slot[p]];
}
