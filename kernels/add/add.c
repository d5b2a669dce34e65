// CPU twin of add.
#include "kernels/add/add.h"

void hk_add_f32(float *sum, const float *term, int64_t count) {
#pragma omp simd
    for (int64_t i = 0; i < count; i++) sum[i] += term[i];
}

void hk_add_f64(double *sum, const double *term, int64_t count) {
#pragma omp simd
    for (int64_t i = 0; i < count; i++) sum[i] += term[i];
}

void hk_add_bf16(float *sum, const hk_bf16 *term, int64_t count) {
#pragma omp simd
    for (int64_t i = 0; i < count; i++) sum[i] += hk_bf16_float(term[i]);
}

void hk_narrow_bf16(hk_bf16 *to, const float *from, int64_t count) {
#pragma omp simd
    for (int64_t i = 0; i < count; i++) to[i] = hk_bf16_round(from[i]);
}

void hk_widen_bf16(float *to, const hk_bf16 *from, int64_t count) {
#pragma omp simd
    for (int64_t i = 0; i < count; i++) to[i] = hk_bf16_float(from[i]);
}
