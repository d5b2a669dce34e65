// CPU twin of linear_cross_entropy: GEMMs and cross_entropy, block by block. It computes nothing itself but the sum
// of the losses, so it is built once for all instruction sets.
#include "kernels/linear_cross_entropy/linear_cross_entropy.h"

#include <assert.h>
#include <math.h>

#include "kernels/cross_entropy/cross_entropy.h"
#include "kernels/matmul/matmul.h"

// The GEMM of `count` rows.
static struct hk_matmul_dims rows(const struct hk_head_dims *dims, int64_t count) {
    return (struct hk_matmul_dims){.m = count, .n = dims->n, .k = dims->k};
}

static int64_t width(const struct hk_head_dims *dims) {
    return dims->turned ? dims->n : dims->k;
}

static int64_t words(const struct hk_head_dims *dims) {
    return dims->turned ? dims->k : dims->n;
}

static int64_t rows_from(const struct hk_head_dims *dims, int64_t first) {
    return dims->m - first < dims->block ? dims->m - first : dims->block;
}

// type: of matrices of tokens; form: of the GEMMs, whose weights are of `weight`; suffix: of losses.
#define DEFINE(type, weight, form, suffix)                                                         \
    static void logits_##form(type *block, const type *x, const weight *w, enum hk_layout layout,  \
                              const struct hk_head_dims *dims, struct hk_tokens of) {              \
        x += of.first * width(dims);                                                               \
        if (dims->turned)                                                                          \
            hk_matmul_nt_##form(block, x, w, layout, rows(dims, of.count), HK_STORE, NULL);        \
        else                                                                                       \
            hk_matmul_nn_##form(block, x, w, layout, rows(dims, of.count), HK_STORE, NULL);        \
    }                                                                                              \
                                                                                                   \
    void hk_linear_cross_entropy_##form(                                                           \
        type *loss, type *lse, type *block, const type *x, const weight *w, enum hk_layout layout, \
        const int32_t *targets, const float *weights, const type *scale, struct hk_head_dims dims, \
        const struct hk_tokens *only) {                                                            \
        double sum = 0;                                                                            \
        assert(dims.block > 0 && (!only || only->count <= dims.block));                            \
        if (only) {                                                                                \
            if (dims.m > 1) logits_##form(block, x, w, layout, &dims, *only);                      \
            return;                                                                                \
        }                                                                                          \
        for (int64_t first = 0; first < dims.m; first += dims.block) {                             \
            const int64_t count = rows_from(&dims, first);                                         \
            logits_##form(block, x, w, layout, &dims, (struct hk_tokens){first, count});           \
            hk_log_sum_exp_##suffix(lse + first, block, count, words(&dims));                      \
            for (int64_t t = 0; t < count; t++) {                                                  \
                const int32_t target = targets[first + t];                                         \
                if (target < 0) continue;                                                          \
                const double lost =                                                                \
                    (double)lse[first + t] - (double)block[t * words(&dims) + target];             \
                sum = fma(weights ? (double)weights[first + t] : 1, lost, sum);                    \
            }                                                                                      \
        }                                                                                          \
        loss[0] = (type)((double)scale[0] * sum);                                                  \
    }                                                                                              \
                                                                                                   \
    static void gradients_##form(type *dx, type *dw, const type *block, const type *x,             \
                                 const weight *w, enum hk_layout layout,                           \
                                 struct hk_matmul_dims dims, bool turned, enum hk_write write_dx,  \
                                 enum hk_write write_dw) {                                         \
        if (turned)                                                                                \
            hk_matmul_nn_##form(dx, block, w, layout, dims, write_dx, NULL);                       \
        else                                                                                       \
            hk_matmul_nt_##form(dx, block, w, layout, dims, write_dx, NULL);                       \
        if (dw)                                                                                    \
            hk_matmul_tn_##form(dw, turned ? block : x, turned ? x : block, layout, dims,          \
                                write_dw);                                                         \
    }                                                                                              \
                                                                                                   \
    void hk_linear_cross_entropy_grad_##form(                                                      \
        type *dx, type *dw, type *block, const type *dloss, const type *x, const weight *w,        \
        enum hk_layout layout, const type *lse, const int32_t *targets, const float *weights,      \
        const type *scale, struct hk_head_dims dims, enum hk_write write_dx,                       \
        enum hk_write write_dw) {                                                                  \
        assert(dims.block > 0);                                                                    \
        for (int64_t first = 0; first == 0 || first < dims.m; first += dims.block) {               \
            const int64_t count = rows_from(&dims, first), at = first * width(&dims);              \
            logits_##form(block, x, w, layout, &dims, (struct hk_tokens){first, count});           \
            hk_cross_entropy_grad_##suffix(block, dloss, block, lse + first, targets + first,      \
                                           weights ? weights + first : NULL, scale, count,         \
                                           words(&dims));                                          \
            gradients_##form(dx + at, dw, block, x + at, w, layout, rows(&dims, count),            \
                             dims.turned, write_dx, first ? HK_ADD : write_dw);                    \
        }                                                                                          \
    }

DEFINE(float, float, f32, f32)
DEFINE(double, double, f64, f64)
DEFINE(float, hk_bf16, bf16, f32)
