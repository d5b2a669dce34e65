// spread: every row gets the vector of its expert (expert biases), and the gradient of that.
// Rows and chunks as in grouped.h; the vector has n elements and lies at `offset` of the chunk.
#ifndef HECATE_KERNELS_SPREAD_H
#define HECATE_KERNELS_SPREAD_H

#include "kernels/types.h"

// y[r, :] (+)= vector of the expert that row r belongs to
void hk_spread_f32(float *y, const float *const *chunk, int64_t offset, const int32_t *first,
                   int64_t experts, int64_t n, enum hk_write write);
void hk_spread_f64(double *y, const double *const *chunk, int64_t offset, const int32_t *first,
                   int64_t experts, int64_t n, enum hk_write write);

// vector of expert e (+)= sum of dy[r, :] over e's rows in ascending order; zeros without rows
void hk_spread_grad_f32(float *const *chunk, int64_t offset, const float *dy, const int32_t *first,
                        int64_t experts, int64_t n, enum hk_write write);
void hk_spread_grad_f64(double *const *chunk, int64_t offset, const double *dy,
                        const int32_t *first, int64_t experts, int64_t n, enum hk_write write);

#endif
