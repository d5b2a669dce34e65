// bf16: the upper half of a float, 8 bits of precision. Operands of GEMMs only: sums are float.
#ifndef HECATE_KERNELS_BF16_H
#define HECATE_KERNELS_BF16_H

#include <stdint.h>
#include <string.h>

#ifdef __CUDACC__ // The same functions serve a device.
#define HK_EVERYWHERE static __host__ __device__ __forceinline__
#else
#define HK_EVERYWHERE static inline
#endif

// A type of its own: never mistaken for an integer.
typedef struct {
    uint16_t bits;
} hk_bf16;

// To the nearest, ties to even, as every GEMM rounds its float operands: denormal numbers become
// 0 with their sign (the processor's instructions treat them so), too large ones infinity; NaN
// stays NaN. Branch-free: loops over it vectorize.
HK_EVERYWHERE hk_bf16 hk_bf16_round(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    const uint32_t magnitude = bits & 0x7fffffff;
    const uint32_t nearest = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    const uint32_t quiet = bits >> 16 | 0x40;
    const uint32_t rounded = magnitude > 0x7f800000 ? quiet : nearest;
    hk_bf16 result;
    result.bits = (uint16_t)(magnitude < 0x00800000 ? bits >> 16 & 0x8000 : rounded);
    return result;
}

// Exact.
HK_EVERYWHERE float hk_bf16_float(hk_bf16 x) {
    const uint32_t bits = (uint32_t)x.bits << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

// to[i] = from[i] rounded.
void hk_round_bf16(hk_bf16 *to, const float *from, int64_t count);

// A k x n matrix in float panels to bf16 panels (types.h): hk_panels_size_bf16(k, n) elements.
void hk_round_panels_bf16(hk_bf16 *to, const float *from, int64_t k, int64_t n);

#endif
