// CPU twin of z_loss.
#include "kernels/z_loss/z_loss.h"

#include "kernels/cpu/row.h"

enum { blocks = 64 };

HK_KERNEL(void, z_loss,
          (real * loss, const real *logits, int64_t tokens, int64_t experts, double coef),
          (loss, logits, tokens, experts, coef),
          HK_PASS(tokens *experts, 0, "tokens experts", tokens, experts)) {
    const int64_t block = (tokens + blocks - 1) / blocks;
    double partial[blocks] = {0};
#pragma omp parallel for schedule(static)
    for (int64_t b = 0; b < blocks; b++) {
        for (int64_t t = b * block; t < (b + 1) * block && t < tokens; t++) {
            const double lse = (double)row_log_sum_exp(logits + t * experts, experts, 1);
            partial[b] += lse * lse;
        }
    }
    double sum = 0;
    for (int b = 0; b < blocks; b++) sum += partial[b];
    loss[0] = tokens > 0 ? (real)(coef * sum / (double)tokens) : 0;
}

HK_KERNEL(void, z_loss_grad,
          (real * dlogits, const real *dloss, const real *logits, int64_t tokens, int64_t experts,
           double coef, enum hk_write write),
          (dlogits, dloss, logits, tokens, experts, coef, write),
          HK_PASS(tokens *experts + HK_WRITTEN(tokens * experts, write), 0, "tokens experts",
                  tokens, experts)) {
    const double factor = 2 * coef * (double)dloss[0] / (double)(tokens > 0 ? tokens : 1);
#pragma omp parallel for schedule(static)
    for (int64_t t = 0; t < tokens; t++) {
        const real *from = logits + t * experts;
        real *to = dlogits + t * experts;
        const real lse = row_log_sum_exp(from, experts, 1);
        const real c = (real)(factor * (double)lse);
#pragma omp simd
        for (int64_t e = 0; e < experts; e++) {
            to[e] = (write == HK_ADD ? to[e] : 0) + c * HK_REAL(exp)(from[e] - lse);
        }
    }
}
