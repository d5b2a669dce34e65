// CPU twin of the rounding of weights, as arrays and as panels (bf16.h).
#include "kernels/cpu/real.h"

enum { parallel_min = 1 << 15 }; // Elements below which a team costs more than it brings.

HK_KERNEL(void, round, (hk_bf16 * to, const float *from, int64_t count), (to, from, count),
          HK_PASS(1.5 * (double)count, 0, "count", count)) {
#pragma omp parallel for simd schedule(static) if (count >= parallel_min)
    for (int64_t i = 0; i < count; i++) to[i] = hk_bf16_round(from[i]);
}

// Rows 2 i and 2 i + 1 of a panel, side by side.
static void round_pair(hk_bf16 *to, const float *from, int64_t rows) {
    for (int64_t j = 0; j < HK_PANEL; j++) {
        to[2 * j] = hk_bf16_round(from[j]);
        to[2 * j + 1] = rows > 1 ? hk_bf16_round(from[HK_PANEL + j]) : (hk_bf16){0};
    }
}

HK_KERNEL(void, round_panels, (hk_bf16 * to, const float *from, int64_t k, int64_t n),
          (to, from, k, n), HK_PASS(1.5 * (double)(k * n), 0, "k n", k, n)) {
    const int64_t panels = (n + HK_PANEL - 1) / HK_PANEL, pairs = (k + 1) / 2;
#pragma omp parallel for schedule(static) if (k * n >= parallel_min)
    for (int64_t i = 0; i < panels * pairs; i++) {
        const int64_t panel = i / pairs, row = i % pairs * 2;
        round_pair(to + i * 2 * HK_PANEL, from + (panel * k + row) * HK_PANEL, k - row);
    }
}
