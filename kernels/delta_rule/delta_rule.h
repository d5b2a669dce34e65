// delta_rule: linear attention whose state, a matrix [width, vwidth] of each head, is corrected by the delta rule and
// decays. Sources: Yang et al. 2024, "Parallelizing Linear Transformers with the Delta Rule over Sequence Length",
// arXiv:2406.06484; Yang et al. 2024, "Gated Delta Networks", arXiv:2412.06464.
#ifndef HECATE_KERNELS_DELTA_RULE_H
#define HECATE_KERNELS_DELTA_RULE_H

#include "kernels/types.h"

enum { HK_DELTA_CHUNK = 64 };

struct hk_delta_dims {
    int64_t batch;
    int64_t positions;
    int64_t heads;  // Those of values, a multiple of groups.
    int64_t groups; // Heads of queries and keys; heads / groups of values share one.
    int64_t width;
    int64_t vwidth;
    int64_t chunk; // Positions that are computed together, at most HK_DELTA_CHUNK.
    double scale;
    const int32_t *
        begins; // [batch, positions]: where the document of each position begins; NULL: with the sequence.
};

// For each sequence and head, S = 0 before the first position of a document, and at each position t
//   S = exp(decay) S
//   S = S + beta k (v - S^T k)^T
//   out = scale S^T q
// This is computed a chunk of positions at a time. With g(t) the sum of decay in a chunk up to t and S the state before
// it, the vectors u that positions store solve the triangular system
//   u(t) = beta(t) (v(t) - exp(g(t)) S^T k(t) - sum over j < t of exp(g(t) - g(j)) k(t).k(j) u(j)),
// and out and the next state are GEMMs with u. Sums g are in double.
//   q, k [batch, positions, groups, width], v, out [batch, positions, heads, vwidth]
//   decay, beta [batch, positions, heads]; decay should not be positive
//   states [batch, chunks, heads, width, vwidth]: S before each chunk
void hk_delta_rule_f32(float *out, float *states, const float *q, const float *k, const float *v,
                       const float *decay, const float *beta, struct hk_delta_dims dims);
void hk_delta_rule_f64(double *out, double *states, const double *q, const double *k,
                       const double *v, const double *decay, const double *beta,
                       struct hk_delta_dims dims);

// The gradients by the operands, from that by out and what forward has left in states; u is computed once more.
//   dstate [batch, heads, width, vwidth]: room for the gradient of a state
void hk_delta_rule_grad_f32(float *dq, float *dk, float *dv, float *ddecay, float *dbeta,
                            float *dstate, const float *dout, const float *q, const float *k,
                            const float *v, const float *decay, const float *beta,
                            const float *states, struct hk_delta_dims dims);
void hk_delta_rule_grad_f64(double *dq, double *dk, double *dv, double *ddecay, double *dbeta,
                            double *dstate, const double *dout, const double *q, const double *k,
                            const double *v, const double *decay, const double *beta,
                            const double *states, struct hk_delta_dims dims);

#endif
