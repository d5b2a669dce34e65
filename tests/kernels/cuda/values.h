// values: the kernels of values of bf16 as the tests of float's call them. Values come and go as floats that bf16 can
// hold; all other arguments of a kernel are handed on as they are.
#ifndef HECATE_TESTS_KERNELS_CUDA_VALUES_H
#define HECATE_TESTS_KERNELS_CUDA_VALUES_H

#include "kernels/launchers.h"
#include "tests/kernels/kernel_case.h"

// `count` values as bf16 until the end of the call; for the same array the same one. Those of test_stored are floats
// again after test_join_values.
hk_bf16 *test_stored(real *values, int64_t count);
const hk_bf16 *test_read(const real *values, int64_t count);
void test_join_values(const char *kernel);

static inline void values_rmsnorm(real *y, real *rstd, const real *x, const real *gain, int64_t m,
                                  int64_t n, double eps) {
    hkc_rmsnorm_bf16(test_lane(), test_stored(y, m * n), rstd, test_read(x, m * n), gain, m, n,
                     eps);
    test_join_values("rmsnorm");
}

static inline void values_rmsnorm_grad(real *dx, real *dgain, const real *dy, const real *x,
                                       const real *rstd, const real *gain, int64_t m, int64_t n,
                                       enum hk_write dx_write, enum hk_write dgain_write) {
    hkc_rmsnorm_grad_bf16(test_lane(), test_stored(dx, m * n), dgain, test_read(dy, m * n),
                          test_read(x, m * n), rstd, gain, m, n, dx_write, dgain_write);
    test_join_values("rmsnorm_grad");
}

static inline void values_softmax(real *r, const real *a, int64_t m, int64_t n) {
    hkc_softmax_bf16(test_lane(), test_stored(r, m * n), test_read(a, m * n), m, n);
    test_join_values("softmax");
}

static inline void values_softmax_grad(real *da, const real *dr, const real *r, int64_t m,
                                       int64_t n, enum hk_write write) {
    hkc_softmax_grad_bf16(test_lane(), test_stored(da, m * n), test_read(dr, m * n),
                          test_read(r, m * n), m, n, write);
    test_join_values("softmax_grad");
}

static inline void values_layernorm(real *y, real *mean, real *rstd, const real *x,
                                    const real *gain, const real *bias, int64_t m, int64_t n,
                                    double eps) {
    hkc_layernorm_bf16(test_lane(), test_stored(y, m * n), mean, rstd, test_read(x, m * n), gain,
                       bias, m, n, eps);
    test_join_values("layernorm");
}

static inline void values_layernorm_grad(real *dx, real *dgain, real *dbias, const real *dy,
                                         const real *x, const real *mean, const real *rstd,
                                         const real *gain, int64_t m, int64_t n,
                                         enum hk_write dx_write, enum hk_write dparam_write) {
    hkc_layernorm_grad_bf16(test_lane(), test_stored(dx, m * n), dgain, dbias, test_read(dy, m * n),
                            test_read(x, m * n), mean, rstd, gain, m, n, dx_write, dparam_write);
    test_join_values("layernorm_grad");
}

static inline int64_t values_of_conv(struct hk_conv_dims d) {
    return d.batch * d.positions * d.channels;
}

static inline void values_causal_conv(real *y, const real *x, const real *w,
                                      struct hk_conv_dims d) {
    hkc_causal_conv_bf16(test_lane(), test_stored(y, values_of_conv(d)),
                         test_read(x, values_of_conv(d)), w, d);
    test_join_values("causal_conv");
}

static inline void values_causal_conv_grad(real *dx, real *dw, const real *dy, const real *x,
                                           const real *w, struct hk_conv_dims d,
                                           enum hk_write write_x, enum hk_write write_w) {
    hkc_causal_conv_grad_bf16(test_lane(), test_stored(dx, values_of_conv(d)), dw,
                              test_read(dy, values_of_conv(d)), test_read(x, values_of_conv(d)), w,
                              d, write_x, write_w);
    test_join_values("causal_conv_grad");
}

static inline int64_t values_of_rope(struct hk_rope_dims d) {
    return d.batch * d.positions * d.heads * d.width;
}

static inline void values_rope(real *y, const real *x, const real *table, struct hk_rope_dims d) {
    const int64_t count = values_of_rope(d);
    hkc_rope_bf16(test_lane(), test_stored(y, count), test_read(x, count), table, d);
    test_join_values("rope");
}

static inline void values_rope_grad(real *dx, const real *dy, const real *table,
                                    struct hk_rope_dims d, enum hk_write write) {
    const int64_t count = values_of_rope(d);
    hkc_rope_grad_bf16(test_lane(), test_stored(dx, count), test_read(dy, count), table, d, write);
    test_join_values("rope_grad");
}

static inline void values_gather(real *y, const real *table, const int32_t *ids, int64_t count,
                                 int64_t width) {
    hkc_gather_bf16(test_lane(), test_stored(y, count * width), table, ids, count, width);
    test_join_values("gather");
}

static inline void values_gather_grad(real *dtable, const real *dy, const int32_t *ids,
                                      int64_t count, int64_t rows, int64_t width,
                                      enum hk_write write) {
    hkc_gather_grad_bf16(test_lane(), dtable, test_read(dy, count * width), ids, count, rows, width,
                         write);
    test_join_values("gather_grad");
}

static inline void values_cross_entropy(real *loss, real *lse, const real *logits,
                                        const int32_t *targets, const float *weights,
                                        const real *scale, int64_t tokens, int64_t vocabulary) {
    hkc_cross_entropy_bf16(test_lane(), loss, lse, test_read(logits, tokens * vocabulary), targets,
                           weights, scale, tokens, vocabulary);
    test_join_values("cross_entropy");
}

static inline void values_cross_entropy_grad(real *dlogits, const real *dloss, const real *logits,
                                             const real *lse, const int32_t *targets,
                                             const float *weights, const real *scale,
                                             int64_t tokens, int64_t vocabulary) {
    const int64_t count = tokens * vocabulary;
    hkc_cross_entropy_grad_bf16(test_lane(), test_stored(dlogits, count), dloss,
                                test_read(logits, count), lse, targets, weights, scale, tokens,
                                vocabulary);
    test_join_values("cross_entropy_grad");
}

static inline void values_distill(real *loss, real *losses, real *lse, const real *logits,
                                  struct hk_teacher teacher, const real *scale, int64_t tokens,
                                  int64_t vocabulary, double temperature) {
    hkc_distill_bf16(test_lane(), loss, losses, lse, test_read(logits, tokens * vocabulary),
                     teacher, scale, tokens, vocabulary, temperature);
    test_join_values("distill");
}

static inline void values_distill_grad(real *dlogits, const real *dloss, const real *logits,
                                       const real *lse, struct hk_teacher teacher,
                                       const real *scale, int64_t tokens, int64_t vocabulary,
                                       double temperature) {
    const int64_t count = tokens * vocabulary;
    hkc_distill_grad_bf16(test_lane(), test_stored(dlogits, count), dloss, test_read(logits, count),
                          lse, teacher, scale, tokens, vocabulary, temperature);
    test_join_values("distill_grad");
}

static inline void values_dpo(real *loss, real *slopes, real *lse, const real *logits,
                              struct hk_teacher reference, const int32_t *targets,
                              const real *scale, struct hk_dpo_dims dims) {
    hkc_dpo_bf16(test_lane(), loss, slopes, lse, test_read(logits, dims.tokens * dims.vocabulary),
                 reference, targets, scale, dims);
    test_join_values("dpo");
}

static inline void values_policy(real *loss, real *slopes, real *lse, const real *logits,
                                 struct hk_teacher rollout, const int32_t *targets,
                                 const real *scale, struct hk_policy_dims dims) {
    hkc_policy_bf16(test_lane(), loss, slopes, lse,
                    test_read(logits, dims.tokens * dims.vocabulary), rollout, targets, scale,
                    dims);
    test_join_values("policy");
}

static inline void values_policy_grad(real *dlogits, const real *dloss, const real *logits,
                                      const real *slopes, const real *lse, const int32_t *targets,
                                      const real *scale, int64_t tokens, int64_t vocabulary) {
    const int64_t count = tokens * vocabulary;
    hkc_policy_grad_bf16(test_lane(), test_stored(dlogits, count), dloss, test_read(logits, count),
                         slopes, lse, targets, scale, tokens, vocabulary);
    test_join_values("policy_grad");
}

static inline void values_matmul_nn(real *c, const real *a, const real *b, enum hk_layout layout,
                                    struct hk_matmul_dims d, enum hk_write write,
                                    const struct hk_epilogue *epilogue) {
    hkc_matmul_nn_bf16(test_lane(), test_stored(c, d.m * d.n), test_read(a, d.m * d.k),
                       test_read(b, d.k * d.n), layout, d, write, epilogue);
    test_join_values("matmul_nn");
}

static inline void values_matmul_nt(real *a, const real *c, const real *b, enum hk_layout layout,
                                    struct hk_matmul_dims d, enum hk_write write,
                                    const struct hk_epilogue *epilogue) {
    hkc_matmul_nt_bf16(test_lane(), test_stored(a, d.m * d.k), test_read(c, d.m * d.n),
                       test_read(b, d.k * d.n), layout, d, write, epilogue);
    test_join_values("matmul_nt");
}

static inline void values_matmul_tn(real *b, const real *a, const real *c, enum hk_layout layout,
                                    struct hk_matmul_dims d, enum hk_write write) {
    hkc_matmul_tn_bf16(test_lane(), b, test_read(a, d.m * d.k), test_read(c, d.m * d.n), layout, d,
                       write);
    test_join_values("matmul_tn");
}

static inline void values_linear_cross_entropy(real *loss, real *lse, real *block, const real *x,
                                               const real *w, enum hk_layout layout,
                                               const int32_t *targets, const float *weights,
                                               const real *scale, struct hk_head_dims d,
                                               const struct hk_tokens *only) {
    const int64_t words = d.turned ? d.k : d.n, width = d.turned ? d.n : d.k;
    hkc_linear_cross_entropy_bf16(test_lane(), loss, lse, test_stored(block, d.block * words),
                                  test_read(x, d.m * width), test_read(w, d.k * d.n), layout,
                                  targets, weights, scale, d, only);
    test_join_values("linear_cross_entropy");
}

static inline void values_linear_cross_entropy_grad(
    real *dx, real *dw, real *block, const real *dloss, const real *x, const real *w,
    enum hk_layout layout, const real *lse, const int32_t *targets, const float *weights,
    const real *scale, struct hk_head_dims d, enum hk_write write_dx, enum hk_write write_dw) {
    const int64_t words = d.turned ? d.k : d.n, width = d.turned ? d.n : d.k;
    hkc_linear_cross_entropy_grad_bf16(test_lane(), test_stored(dx, d.m * width), dw,
                                       test_stored(block, d.block * words), dloss,
                                       test_read(x, d.m * width), test_read(w, d.k * d.n), layout,
                                       lse, targets, weights, scale, d, write_dx, write_dw);
    test_join_values("linear_cross_entropy_grad");
}

static inline void values_spread(real *y, const real *const *chunk, int64_t offset,
                                 const int32_t *first, int64_t experts, int64_t n,
                                 enum hk_write write) {
    hkc_spread_bf16(test_lane(), test_stored(y, first[experts] * n), chunk, offset, first, experts,
                    n, write);
    test_join_values("spread");
}

static inline void values_spread_grad(real *const *chunk, int64_t offset, const real *dy,
                                      const int32_t *first, int64_t experts, int64_t n,
                                      enum hk_write write) {
    hkc_spread_grad_bf16(test_lane(), chunk, offset, test_read(dy, first[experts] * n), first,
                         experts, n, write);
    test_join_values("spread_grad");
}

static inline void values_sum_rows(real *y, const real *x, int64_t m, int64_t n,
                                   enum hk_write write) {
    hkc_sum_rows_bf16(test_lane(), y, test_read(x, m * n), m, n, write);
    test_join_values("sum_rows");
}

static inline void values_sum_columns(real *y, const real *x, int64_t m, int64_t n,
                                      enum hk_write write) {
    hkc_sum_columns_bf16(test_lane(), y, test_read(x, m * n), m, n, write);
    test_join_values("sum_columns");
}

static inline void values_sdpa(real *out, real *lse, const real *q, const real *k, const real *v,
                               const real *sinks, struct hk_sdpa_dims d) {
    const int64_t rows = d.batch * d.positions;
    hkc_sdpa_bf16(test_lane(), test_stored(out, rows * d.heads * d.vwidth), lse,
                  test_read(q, rows * d.heads * d.width), test_read(k, rows * d.groups * d.width),
                  test_read(v, rows * d.groups * d.vwidth), sinks, d);
    test_join_values("sdpa");
}

static inline void values_sdpa_grad(real *dq, real *dk, real *dv, const real *dout, const real *q,
                                    const real *k, const real *v, const real *out, const real *lse,
                                    struct hk_sdpa_dims d) {
    const int64_t rows = d.batch * d.positions, q_count = rows * d.heads * d.width;
    const int64_t out_count = rows * d.heads * d.vwidth, k_count = rows * d.groups * d.width;
    const int64_t v_count = rows * d.groups * d.vwidth;
    hkc_sdpa_grad_bf16(test_lane(), test_stored(dq, q_count), test_stored(dk, k_count),
                       test_stored(dv, v_count), test_read(dout, out_count), test_read(q, q_count),
                       test_read(k, k_count), test_read(v, v_count), test_read(out, out_count), lse,
                       d);
    test_join_values("sdpa_grad");
}

static inline void values_sinks_grad(real *dsinks, const real *dout, const real *out,
                                     const real *lse, const real *sinks, int64_t batch,
                                     int64_t positions, int64_t heads, int64_t width,
                                     enum hk_write write) {
    const int64_t count = batch * positions * heads * width;
    hkc_sinks_grad_bf16(test_lane(), dsinks, test_read(dout, count), test_read(out, count), lse,
                        sinks, batch, positions, heads, width, write);
    test_join_values("sinks_grad");
}

#endif
