// sum: a matrix to the sum of its rows or of its columns.
#ifndef HECATE_KERNELS_SUM_H
#define HECATE_KERNELS_SUM_H

#include "kernels/types.h"

// y[j] (+)= sum over i ascending of x[i, j];  y [n], x [m, n]
void hk_sum_rows_f32(float *y, const float *x, int64_t m, int64_t n, enum hk_write write);
void hk_sum_rows_f64(double *y, const double *x, int64_t m, int64_t n, enum hk_write write);

// y[i] (+)= sum over j of x[i, j];  y [m], x [m, n]
void hk_sum_columns_f32(float *y, const float *x, int64_t m, int64_t n, enum hk_write write);
void hk_sum_columns_f64(double *y, const double *x, int64_t m, int64_t n, enum hk_write write);

#endif
