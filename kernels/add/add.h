// add: sums up messages of ranks, and converts those in bf16. One thread each, as they run beside the computation.
#ifndef HECATE_KERNELS_ADD_H
#define HECATE_KERNELS_ADD_H

#include <stdint.h>

#include "kernels/bf16.h"

// sum[i] += term[i], i < count
void hk_add_f32(float *sum, const float *term, int64_t count);
void hk_add_f64(double *sum, const double *term, int64_t count);

// The same of terms in bf16: each becomes a float, which is exact, and is then added as floats are.
void hk_add_bf16(float *sum, const hk_bf16 *term, int64_t count);

// to[i] = from[i], i < count: rounded as hk_bf16_round says, and exact. The arrays do not overlap.
void hk_narrow_bf16(hk_bf16 *to, const float *from, int64_t count);
void hk_widen_bf16(float *to, const hk_bf16 *from, int64_t count);

#endif
