// CUDA twin of linear_cross_entropy: launches of matmul's and cross_entropy's kernels. The losses of tokens wait in the lane's scratch, which
// GEMMs with rows of tokens as their result do not use.
// Differences from the contract: weights lie as rows, dw has the same bits for every size of block only where one block
// takes all tokens, and the losses of at most HKC_SCRATCH / 8 tokens are summed. _bf16: x, w, block and dx are bf16, as
// GEMMs read and leave them.
#include "kernels/linear_cross_entropy/linear_cross_entropy.h"

#include <assert.h>

#include "kernels/launchers.h"

namespace {

// The kernels by type of values.
void nn(hkc_lane *lane, float *c, const float *a, const float *b, hk_matmul_dims d, hk_write w) {
    hkc_matmul_nn_f32(lane, c, a, b, HK_ROWS, d, w, NULL);
}
void nn(hkc_lane *lane, hk_bf16 *c, const hk_bf16 *a, const hk_bf16 *b, hk_matmul_dims d,
        hk_write w) {
    hkc_matmul_nn_bf16(lane, c, a, b, HK_ROWS, d, w, NULL);
}
void nt(hkc_lane *lane, float *a, const float *c, const float *b, hk_matmul_dims d, hk_write w) {
    hkc_matmul_nt_f32(lane, a, c, b, HK_ROWS, d, w, NULL);
}
void nt(hkc_lane *lane, hk_bf16 *a, const hk_bf16 *c, const hk_bf16 *b, hk_matmul_dims d,
        hk_write w) {
    hkc_matmul_nt_bf16(lane, a, c, b, HK_ROWS, d, w, NULL);
}
void tn(hkc_lane *lane, float *b, const float *a, const float *c, hk_matmul_dims d, hk_write w) {
    hkc_matmul_tn_f32(lane, b, a, c, HK_ROWS, d, w);
}
void tn(hkc_lane *lane, float *b, const hk_bf16 *a, const hk_bf16 *c, hk_matmul_dims d,
        hk_write w) {
    hkc_matmul_tn_bf16(lane, b, a, c, HK_ROWS, d, w);
}
void token_losses(hkc_lane *lane, double *losses, float *lse, const float *logits,
                  const int32_t *targets, const float *weights, int64_t tokens, int64_t words) {
    hkc_token_losses_f32(lane, losses, lse, logits, targets, weights, tokens, words);
}
void token_losses(hkc_lane *lane, double *losses, float *lse, const hk_bf16 *logits,
                  const int32_t *targets, const float *weights, int64_t tokens, int64_t words) {
    hkc_token_losses_bf16(lane, losses, lse, logits, targets, weights, tokens, words);
}
void logits_grad(hkc_lane *lane, float *logits, const float *dloss, const float *lse,
                 const int32_t *targets, const float *weights, const float *scale, int64_t tokens,
                 int64_t words) {
    hkc_cross_entropy_grad_f32(lane, logits, dloss, logits, lse, targets, weights, scale, tokens,
                               words);
}
void logits_grad(hkc_lane *lane, hk_bf16 *logits, const float *dloss, const float *lse,
                 const int32_t *targets, const float *weights, const float *scale, int64_t tokens,
                 int64_t words) {
    hkc_cross_entropy_grad_bf16(lane, logits, dloss, logits, lse, targets, weights, scale, tokens,
                                words);
}

struct head {
    hk_head_dims dims;
    int64_t width, words;
};

head head_of(hk_head_dims dims, hk_layout layout) {
    assert(dims.block > 0 && layout == HK_ROWS);
    (void)layout;
    return {dims, dims.turned ? dims.n : dims.k, dims.turned ? dims.k : dims.n};
}

hk_matmul_dims rows(const head &h, int64_t count) {
    return {count, h.dims.n, h.dims.k, HK_UNPACKED};
}

int64_t rows_from(const head &h, int64_t first) {
    return h.dims.m - first < h.dims.block ? h.dims.m - first : h.dims.block;
}

const float *from(const float *weights, int64_t first) {
    return weights ? weights + first : NULL;
}

template <class T>
void logits_of(hkc_lane *lane, T *block, const T *x, const T *w, const head &h, hk_tokens of) {
    x += of.first * h.width;
    if (h.dims.turned)
        nt(lane, block, x, w, rows(h, of.count), HK_STORE);
    else
        nn(lane, block, x, w, rows(h, of.count), HK_STORE);
}

template <class T>
void forward(hkc_lane *lane, float *loss, float *lse, T *block, const T *x, const T *w,
             const int32_t *targets, const float *weights, const float *scale, const head &h,
             const hk_tokens *only) {
    double *losses = (double *)lane->scratch;
    assert(h.dims.m <= HKC_SCRATCH / (int64_t)sizeof *losses);
    if (only) {
        assert(only->count <= h.dims.block);
        if (h.dims.m > 1) logits_of(lane, block, x, w, h, *only);
        return;
    }
    for (int64_t first = 0; first < h.dims.m; first += h.dims.block) {
        const int64_t count = rows_from(h, first);
        float *statistics = lse + first;
        logits_of(lane, block, x, w, h, {first, count});
        token_losses(lane, losses + first, statistics, block, targets + first, from(weights, first),
                     count, h.words);
    }
    hkc_sum_losses(lane, loss, losses, scale, h.dims.m);
}

template <class T>
void gradients(hkc_lane *lane, T *dx, float *dw, const T *block, const T *x, const T *w,
               bool turned, hk_matmul_dims dims, hk_write write_dx, hk_write write_dw) {
    if (turned) {
        nn(lane, dx, block, w, dims, write_dx);
        if (dw) tn(lane, dw, block, x, dims, write_dw);
    } else {
        nt(lane, dx, block, w, dims, write_dx);
        if (dw) tn(lane, dw, x, block, dims, write_dw);
    }
}

template <class T>
void backward(hkc_lane *lane, T *dx, float *dw, T *block, const float *dloss, const T *x,
              const T *w, const float *lse, const int32_t *targets, const float *weights,
              const float *scale, const head &h, hk_write write_dx, hk_write write_dw) {
    for (int64_t first = 0; first == 0 || first < h.dims.m; first += h.dims.block) {
        const int64_t count = rows_from(h, first), at = first * h.width;
        const hk_write write = first ? HK_ADD : write_dw;
        logits_of(lane, block, x, w, h, {first, count});
        logits_grad(lane, block, dloss, lse + first, targets + first, from(weights, first), scale,
                    count, h.words);
        gradients(lane, dx + at, dw, block, x + at, w, h.dims.turned, rows(h, count), write_dx,
                  write);
    }
}

} // namespace

extern "C" void hkc_linear_cross_entropy_f32(struct hkc_lane *lane, float *loss, float *lse,
                                             float *block, const float *x, const float *w,
                                             enum hk_layout layout, const int32_t *targets,
                                             const float *weights, const float *scale,
                                             struct hk_head_dims dims,
                                             const struct hk_tokens *only) {
    forward(lane, loss, lse, block, x, w, targets, weights, scale, head_of(dims, layout), only);
}

extern "C" void hkc_linear_cross_entropy_bf16(struct hkc_lane *lane, float *loss, float *lse,
                                              hk_bf16 *block, const hk_bf16 *x, const hk_bf16 *w,
                                              enum hk_layout layout, const int32_t *targets,
                                              const float *weights, const float *scale,
                                              struct hk_head_dims dims,
                                              const struct hk_tokens *only) {
    forward(lane, loss, lse, block, x, w, targets, weights, scale, head_of(dims, layout), only);
}

extern "C" void hkc_linear_cross_entropy_grad_f32(struct hkc_lane *lane, float *dx, float *dw,
                                                  float *block, const float *dloss, const float *x,
                                                  const float *w, enum hk_layout layout,
                                                  const float *lse, const int32_t *targets,
                                                  const float *weights, const float *scale,
                                                  struct hk_head_dims dims, enum hk_write write_dx,
                                                  enum hk_write write_dw) {
    backward(lane, dx, dw, block, dloss, x, w, lse, targets, weights, scale, head_of(dims, layout),
             write_dx, write_dw);
}

extern "C" void hkc_linear_cross_entropy_grad_bf16(struct hkc_lane *lane, hk_bf16 *dx, float *dw,
                                                   hk_bf16 *block, const float *dloss,
                                                   const hk_bf16 *x, const hk_bf16 *w,
                                                   enum hk_layout layout, const float *lse,
                                                   const int32_t *targets, const float *weights,
                                                   const float *scale, struct hk_head_dims dims,
                                                   enum hk_write write_dx, enum hk_write write_dw) {
    backward(lane, dx, dw, block, dloss, x, w, lse, targets, weights, scale, head_of(dims, layout),
             write_dx, write_dw);
}
