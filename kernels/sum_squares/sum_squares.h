// sum_squares: for the norm of gradients and parameters.
#ifndef HECATE_KERNELS_SUM_SQUARES_H
#define HECATE_KERNELS_SUM_SQUARES_H

#include "kernels/types.h"

// Sum of x[i]^2 in double. Blocks and their order depend on `count` alone: the same bits for any
// number of threads.
double hk_sum_squares_f32(const float *x, int64_t count);
double hk_sum_squares_f64(const double *x, int64_t count);

#endif
