// add: sums up messages of ranks.
#ifndef HECATE_KERNELS_ADD_H
#define HECATE_KERNELS_ADD_H

#include <stdint.h>

// sum[i] += term[i], i < count
void hk_add_f32(float *sum, const float *term, int64_t count);
void hk_add_f64(double *sum, const double *term, int64_t count);

#endif
