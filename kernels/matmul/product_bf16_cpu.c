// The matrix products with bf16 operands.
#include "kernels/matmul/product.h"

static float rounded(float x) {
    return hk_bf16_float(hk_bf16_round(x));
}

// Element [i, j] of a matrix B.
static float element(const hk_bf16 *b, const struct product *p, int64_t i, int64_t j) {
    if (p->layout == HK_ROWS) return hk_bf16_float(b[i * p->n + j]);
    const int64_t pair = j / HK_PANEL * ((p->k + 1) / 2) + i / 2;
    return hk_bf16_float(b[(pair * HK_PANEL + j % HK_PANEL) * 2 + i % 2]);
}

void HK_VARIANT_BF16(product_nn)(float *c, const float *a, const hk_bf16 *const *b,
                                 const struct product *p) {
    for (int64_t e = 0; e < p->groups; e++) {
#pragma omp parallel for schedule(static)
        for (int64_t i = p->first[e]; i < p->first[e + 1]; i++) {
            for (int64_t j = 0; j < p->n; j++) {
                float sum = 0;
                for (int64_t l = 0; l < p->k; l++) {
                    sum += rounded(a[i * p->k + l]) * element(b[e] + p->offset, p, l, j);
                }
                c[i * p->n + j] = (p->write == HK_ADD ? c[i * p->n + j] : 0) + sum;
            }
        }
    }
}

void HK_VARIANT_BF16(product_nt)(float *a, const float *c, const hk_bf16 *const *b,
                                 const struct product *p) {
    for (int64_t e = 0; e < p->groups; e++) {
#pragma omp parallel for schedule(static)
        for (int64_t i = p->first[e]; i < p->first[e + 1]; i++) {
            for (int64_t l = 0; l < p->k; l++) {
                float sum = 0;
                for (int64_t j = 0; j < p->n; j++) {
                    sum += rounded(c[i * p->n + j]) * element(b[e] + p->offset, p, l, j);
                }
                a[i * p->k + l] = (p->write == HK_ADD ? a[i * p->k + l] : 0) + sum;
            }
        }
    }
}

void HK_VARIANT_BF16(product_tn)(float *const *b, const float *a, const float *c,
                                 const struct product *p) {
    const bool panels = p->layout == HK_PANELS;
    const int64_t width = panels ? (p->n + HK_PANEL - 1) / HK_PANEL * HK_PANEL : p->n;
    for (int64_t e = 0; e < p->groups; e++) {
        if (p->first[e] == p->first[e + 1] && p->write == HK_ADD) continue;
#pragma omp parallel for schedule(static)
        for (int64_t l = 0; l < p->k; l++) {
            for (int64_t j = 0; j < width; j++) {
                float sum = 0;
                for (int64_t i = p->first[e]; i < p->first[e + 1] && j < p->n; i++) {
                    sum += rounded(a[i * p->k + l]) * rounded(c[i * p->n + j]);
                }
                float *to = b[e] + p->offset + l * p->n + j;
                if (panels) {
                    to = b[e] + p->offset + (j / HK_PANEL * p->k + l) * HK_PANEL + j % HK_PANEL;
                }
                *to = (p->write == HK_ADD ? *to : 0) + sum;
            }
        }
    }
}
