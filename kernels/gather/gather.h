// gather: rows of a table by index (token embeddings), and the gradient of that.
#ifndef HECATE_KERNELS_GATHER_H
#define HECATE_KERNELS_GATHER_H

#include "kernels/types.h"

// y[i, :] = table[ids[i], :];  y [count, width], table row major with `width` columns, ids in range
void hk_gather_f32(float *y, const float *table, const int32_t *ids, int64_t count, int64_t width);
void hk_gather_f64(double *y, const double *table, const int32_t *ids, int64_t count,
                   int64_t width);

// dtable[id, :] (+)= sum over i ascending with ids[i] = id of dy[i, :];  dtable [rows, width]
void hk_gather_grad_f32(float *dtable, const float *dy, const int32_t *ids, int64_t count,
                        int64_t rows, int64_t width, enum hk_write write);
void hk_gather_grad_f64(double *dtable, const double *dy, const int32_t *ids, int64_t count,
                        int64_t rows, int64_t width, enum hk_write write);

#endif
