// sdpa: scaled dot-product attention, softmax(scale Q K^T + mask) V, with grouped heads. Scores may be capped.
//
// Scores are never stored: blocks of keys are folded into a running maximum and sum (Dao et al.
// 2022, "FlashAttention", arXiv:2205.14135), in ascending order of fixed blocks. Blocks that the
// mask hides are skipped.
#ifndef HECATE_KERNELS_SDPA_H
#define HECATE_KERNELS_SDPA_H

#include "kernels/types.h"

struct hk_sdpa_dims {
    int64_t batch;
    int64_t positions;
    int64_t heads; // Heads of queries.
    int64_t
        groups; // Groups of keys and values; divides heads. Head h reads group h / (heads / groups).
    int64_t width;  // Width of queries and keys.
    int64_t vwidth; // Width of values and outputs.
    int64_t window; // > 0: only keys with query - key < window; 0: no limit.
    int64_t chunk;  // > 0: only keys from the query's chunk of so many positions on; 0: no limit.
    bool causal;    // Only keys with key <= query.
    double scale;   // Usually width^-0.5.
    double cap;     // > 0: scaled scores s become cap tanh(s / cap); 0: they stay.
    // [batch, positions], from hk_documents: each query sees its own document only, and its chunk counts from
    // where that begins, as if it were a sequence by itself. NULL: a sequence is one document.
    const int32_t *begins;
    // Keys and values of earlier calls that lie before the first query's and that all positions may see. Only hk_sdpa_*
    // on CPUs takes them, with one causal sequence; elsewhere 0.
    int64_t before;
    int64_t
        apart; // From the lse of a head to that of the next, where these are some positions of each; 0: positions.
};

//   q    [batch, positions, heads, width]      k  [batch, positions, groups, width]
//   out  [batch, positions, heads, vwidth]     v  [batch, positions, groups, vwidth]
//   lse  [batch, heads, positions]  log of the sum of exp of the scaled, capped scores, for the gradient
//   sinks [heads], or NULL: a further score of all rows of a head, whose value is 0 (Xiao et al. 2023, "Efficient
//        Streaming Language Models with Attention Sinks", arXiv:2309.17453). lse has it, so the gradients of q, k and
//        v need no more; its own is sinks.h.
// k and v point to the row of the first query. Bits of a row of out do not depend on how many rows a call computes.
void hk_sdpa_f32(float *out, float *lse, const float *q, const float *k, const float *v,
                 const float *sinks, struct hk_sdpa_dims dims);
void hk_sdpa_f64(double *out, double *lse, const double *q, const double *k, const double *v,
                 const double *sinks, struct hk_sdpa_dims dims);

// The same with bf16 operands in its GEMMs: queries, keys, values and weights are rounded as they
// are read, scores and outputs are summed up in float, the softmax is float, and so are sinks.
void hk_sdpa_bf16(float *out, float *lse, const float *q, const float *k, const float *v,
                  const float *sinks, struct hk_sdpa_dims dims);

// Stores dq, dk, dv (shapes of q, k, v). out and lse are the results of hk_sdpa.
void hk_sdpa_grad_f32(float *dq, float *dk, float *dv, const float *dout, const float *q,
                      const float *k, const float *v, const float *out, const float *lse,
                      struct hk_sdpa_dims dims);
void hk_sdpa_grad_f64(double *dq, double *dk, double *dv, const double *dout, const double *q,
                      const double *k, const double *v, const double *out, const double *lse,
                      struct hk_sdpa_dims dims);

// With bf16 operands: of dout, q, k, v, the weights and their gradients. delta, the sum of dout * out
// of a row, is float.
void hk_sdpa_grad_bf16(float *dq, float *dk, float *dv, const float *dout, const float *q,
                       const float *k, const float *v, const float *out, const float *lse,
                       struct hk_sdpa_dims dims);

#endif
