// CPU twin of add: one thread, as it runs beside the computation.
#include "kernels/add/add.h"

void hk_add_f32(float *sum, const float *term, int64_t count) {
#pragma omp simd
    for (int64_t i = 0; i < count; i++) sum[i] += term[i];
}

void hk_add_f64(double *sum, const double *term, int64_t count) {
#pragma omp simd
    for (int64_t i = 0; i < count; i++) sum[i] += term[i];
}
