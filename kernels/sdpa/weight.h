// weight: from scores to weights, a vector of scores at a time. Powers of two: the factor log2(e) is
// part of the scale.
#ifndef HECATE_KERNELS_SDPA_WEIGHT_H
#define HECATE_KERNELS_SDPA_WEIGHT_H

#include "kernels/cpu/avx512.h"

#define HK_LOG2_E 1.4426950408889634
#define HK_LN_2 0.6931471805599453

#if HK_BITS == 32

typedef int32_t lane_int;
#define HK_BIG 1e38f // Beyond every score, and still a number when subtracted.

// 2^r for |r| <= 1/2: minimax of relative error below 2^-23, 3 * 2^-24 with its roundings.
HK_INLINE vec exp2_near_0(vec r) {
    vec q = r * 0x1.5bba14p-10f + 0x1.3cea88p-7f;
    q = q * r + 0x1.c6b752p-5f;
    q = q * r + 0x1.ebf9bcp-3f;
    q = q * r + 0x1.62e42ap-1f;
    return q * r + 1;
}

#else

typedef int64_t lane_int;
#define HK_BIG 1e300

#endif

typedef lane_int mask __attribute__((vector_size(HK_VECTOR_BYTES)));

HK_INLINE vec vec_all(real x) {
    return (vec){0} + x;
}

// yes where `where` is all ones, no where it is 0.
HK_INLINE vec vec_select(mask where, vec yes, vec no) {
    return (vec)((where & (mask)yes) | (~where & (mask)no));
}

// All ones in the lanes [begin, end).
HK_INLINE mask lanes_in(int64_t begin, int64_t end) {
    mask lane;
    for (int i = 0; i < lanes; i++) lane[i] = i;
    const mask first = (mask){0} + (lane_int)begin, last = (mask){0} + (lane_int)end;
    return (lane >= first) & (lane < last);
}

#if HK_VECTOR_BYTES == 64 && HK_BITS == 32

// The larger one; b where either is NaN.
HK_INLINE vec vec_max(vec a, vec b) {
    return avx512_max(a, b);
}

// 2^x for x <= 128; 0 below -150. NaN stays.
HK_INLINE vec vec_exp2(vec x) {
    const vec t = vec_max(vec_all(-150), x);
    const vec whole = avx512_round(t);
    return avx512_scale(exp2_near_0(t - whole), whole);
}

#elif HK_BITS == 32

// The larger one; b where either is NaN.
HK_INLINE vec vec_max(vec a, vec b) {
#if HK_VECTOR_BYTES == 32
    return __builtin_ia32_maxps256(a, b);
#else
    return vec_select(a > b, a, b);
#endif
}

// 2^x for x < 127.5; below -126 less than 2^-126, below -127 0. NaN stays.
HK_INLINE vec vec_exp2(vec x) {
    const vec t = vec_max(vec_all(-127), x);
    const vec shifted = t + 0x1.8p23f; // The nearest integer, in the lowest bits.
    const vec power = exp2_near_0(t - (shifted - 0x1.8p23f));
    return (vec)((mask)power + ((mask)shifted << 23)); // At -127 power is 1: exactly 0.
}

#else

HK_INLINE vec vec_max(vec a, vec b) {
    return vec_select(a > b, a, b);
}

HK_INLINE vec vec_exp2(vec x) {
    for (int i = 0; i < lanes; i++) x[i] = exp2(x[i]);
    return x;
}

#endif

// log2 of a positive normal number. Branch-free for float, like scalar.h.
HK_INLINE real real_log2(real x) {
#if HK_BITS == 32
    // x = 2^whole m, sqrt(1/2) <= m < sqrt(2); log2 m = r q(r), r = m - 1: minimax below 2^-25.
    int32_t bits;
    memcpy(&bits, &x, sizeof bits);
    const int32_t whole = (bits - 0x3f3504f3) >> 23;
    bits -= (int32_t)((uint32_t)whole << 23);
    float m;
    memcpy(&m, &bits, sizeof m);
    const float r = m - 1;
    float q = 0x1.01b6d6p-3f;
    q = q * r - 0x1.a87d0ap-3f;
    q = q * r + 0x1.b9c91ap-3f;
    q = q * r - 0x1.e95be8p-3f;
    q = q * r + 0x1.26d384p-2f;
    q = q * r - 0x1.715c4ep-2f;
    q = q * r + 0x1.ec73d6p-2f;
    q = q * r - 0x1.715470p-1f;
    q = q * r + 0x1.715476p+0f;
    return (float)whole + r * q;
#else
    return log2(x);
#endif
}

#endif
