// gather: rows of a table by index (token embeddings), and the gradient of that; ahead: which tokens are further on.
#ifndef HECATE_KERNELS_GATHER_H
#define HECATE_KERNELS_GATHER_H

#include "kernels/types.h"

// y[i, :] = table[ids[i], :], zeros where the id is negative (no token);  y [count, width], table row major with
// `width` columns, ids below its rows
void hk_gather_f32(float *y, const float *table, const int32_t *ids, int64_t count, int64_t width);
void hk_gather_f64(double *y, const double *table, const int32_t *ids, int64_t count,
                   int64_t width);

// dtable[id, :] (+)= sum over i ascending with ids[i] = id of dy[i, :];  dtable [rows, width]; negative ids add nothing
void hk_gather_grad_f32(float *dtable, const float *dy, const int32_t *ids, int64_t count,
                        int64_t rows, int64_t width, enum hk_write write);
void hk_gather_grad_f64(double *dtable, const double *dy, const int32_t *ids, int64_t count,
                        int64_t rows, int64_t width, enum hk_write write);

// ids[s, t] = targets[s, t + by], -1 where a sequence has ended;  both [sequences, positions], by >= 0
void hk_ahead(int32_t *ids, const int32_t *targets, int64_t sequences, int64_t positions,
              int64_t by);

#endif
