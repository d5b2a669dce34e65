// route: rows ordered by expert. Which row each (token, choice) takes, and moving tokens to rows
// and back. Gradients: permute and combine are each other's.
#ifndef HECATE_KERNELS_ROUTE_H
#define HECATE_KERNELS_ROUTE_H

#include "kernels/types.h"

//   ids    [tokens, topk]  expert of each choice, in [0, experts); negative: dropped
//   first  [experts + 1]   rows first[e] .. first[e+1]-1 are expert e's
//   pair   [tokens * topk] pair[r] = t * topk + j of row r; rows by expert, then by t, then by j; behind
//                          them the dropped ones
//   slot   [tokens, topk]  the row of (t, j): the inverse of pair; -1 where it is dropped
void hk_route(int32_t *first, int32_t *pair, int32_t *slot, const int32_t *ids, int64_t tokens,
              int64_t topk, int64_t experts);

// rows[r, :] = x[pair[r] / topk, :];  rows [tokens * topk, width], x [tokens, width]
void hk_permute_f32(float *rows, const float *x, const int32_t *pair, int64_t tokens, int64_t topk,
                    int64_t width);
void hk_permute_f64(double *rows, const double *x, const int32_t *pair, int64_t tokens,
                    int64_t topk, int64_t width);

// y[t, :] (+)= sum over j ascending of rows[slot[t, j], :]; a negative slot (dropped) adds nothing
void hk_combine_f32(float *y, const float *rows, const int32_t *slot, int64_t tokens, int64_t topk,
                    int64_t width, enum hk_write write);
void hk_combine_f64(double *y, const double *rows, const int32_t *slot, int64_t tokens,
                    int64_t topk, int64_t width, enum hk_write write);

// g[r] = weights[pair[r]], r < count
void hk_gate_rows_f32(float *g, const float *weights, const int32_t *pair, int64_t count);
void hk_gate_rows_f64(double *g, const double *weights, const int32_t *pair, int64_t count);

// dweights[p] = dg[slot[p]], p < count; 0 where the slot is negative (dropped)
void hk_gate_rows_grad_f32(float *dweights, const float *dg, const int32_t *slot, int64_t count);
void hk_gate_rows_grad_f64(double *dweights, const double *dg, const int32_t *slot, int64_t count);

#endif
