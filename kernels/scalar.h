// scalar: elementwise functions for emitted loops. Branch-free and inline, so that gcc -O3
// -fno-trapping-math vectorizes a loop that calls the _f32 ones; every `?:` is a select. The _f64
// ones call libm: they serve the reference builds.
//
// Error of the _f32 functions, for all finite x: at most 4 units in the last place, and in the
// lower tails of gelu, where a rounding of x is magnified, |x f'(x) / f(x)| more. Factors below
// FLT_MIN may become 0. NaN gives NaN. The gradients (dy, x) give
// dy * derivative at x, and are within 4 units of the largest term they are the sum of.
//
// Coefficients: minimax fits (Remez) of relative error, all below 2^-26.
#ifndef HECATE_KERNELS_SCALAR_H
#define HECATE_KERNELS_SCALAR_H

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#ifdef __CUDACC__ // The same functions serve loops on a device.
#define HK_SCALAR static __host__ __device__ __forceinline__
#else
#define HK_SCALAR static inline __attribute__((always_inline, unused))
#endif

// 2^n for -126 <= n <= 127.
HK_SCALAR float hk_exp2_int_f32(int32_t n) {
    const int32_t bits = (int32_t)((uint32_t)(n + 127) << 23);
    float power;
    memcpy(&power, &bits, sizeof power);
    return power;
}

HK_SCALAR float hk_exp_f32(float x) {
    // Beyond these the result is 0 or infinity anyway. NaN passes through: it compares false.
    const float low = x < -104.0f ? -104.0f : x;
    const float t = low > 89.0f ? 89.0f : low;

    // t = n ln 2 + r with |r| <= ln 2 / 2. Adding 1.5 * 2^23 rounds to the nearest integer.
    const float n = (t * 0x1.715476p0f + 0x1.8p23f) - 0x1.8p23f;
    const float r = (t - n * 0x1.62e4p-1f) - n * 0x1.7f7d1cp-20f;

    float q = 0x1.6a1a72p-10f;
    q = q * r + 0x1.123fc6p-7f;
    q = q * r + 0x1.555916p-5f;
    q = q * r + 0x1.555488p-3f;
    q = q * r + 0x1.fffffcp-2f;
    const float e = 1.0f + (r + r * r * q);

    // In two steps, since 2^n itself may be out of range where the result is not.
    const int32_t whole = (int32_t)n;
    const int32_t half = whole >> 1;
    return e * hk_exp2_int_f32(half) * hk_exp2_int_f32(whole - half);
}

HK_SCALAR float hk_sigmoid_f32(float x) {
    return 1.0f / (1.0f + hk_exp_f32(-x));
}

// sigmoid(x) sigmoid(-x), the slope of sigmoid: nothing cancels, and a loop that has sigmoid(x), too,
// shares its exponential and division.
HK_SCALAR float hk_sigmoid_slope_f32(float x) {
    const float e = hk_exp_f32(-x), s = hk_sigmoid_f32(x);
    return e > FLT_MAX ? 0.0f : s * (e * s); // NaN stays.
}

HK_SCALAR float hk_sigmoid_grad_f32(float dy, float x) {
    return dy * hk_sigmoid_slope_f32(x);
}

// max(x, 0) + log1p(e), e = exp(-|x|): 2 atanh(s) of s = e / (2 + e), at most a third; its series.
HK_SCALAR float hk_softplus_f32(float x) {
    const float e = hk_exp_f32(-fabsf(x)), s = e / (2.0f + e), t = s * s;
    float q = 1.0f / 15.0f;
    q = q * t + 1.0f / 13.0f;
    q = q * t + 1.0f / 11.0f;
    q = q * t + 1.0f / 9.0f;
    q = q * t + 1.0f / 7.0f;
    q = q * t + 0.2f;
    q = q * t + 1.0f / 3.0f;
    return (x < 0.0f ? 0.0f : x) + 2.0f * (s + s * t * q); // NaN stays.
}

HK_SCALAR float hk_softplus_grad_f32(float dy, float x) {
    return dy * hk_sigmoid_f32(x);
}

HK_SCALAR float hk_silu_f32(float x) {
    return x * hk_sigmoid_f32(x);
}

HK_SCALAR float hk_silu_grad_f32(float dy, float x) {
    return dy * (hk_sigmoid_f32(x) + x * hk_sigmoid_slope_f32(x));
}

HK_SCALAR float hk_tanh_f32(float x) {
    const float t = fabsf(x);
    const float s = t * t;
    float q = -0x1.6a5320p-8f;
    q = q * s + 0x1.4f9942p-6f;
    q = q * s - 0x1.b7da50p-5f;
    q = q * s + 0x1.11044ep-3f;
    q = q * s - 0x1.555526p-2f;
    const float near = t + t * s * q; // Below 0.65, where 1 - 2 / (...) would cancel.
    const float far = 1.0f - 2.0f / (hk_exp_f32(2.0f * t) + 1.0f);
    return copysignf(t < 0.65f ? near : far, x);
}

HK_SCALAR float hk_tanh_grad_f32(float dy, float x) {
    // 1 - tanh^2 = 4 s (1 - s) with s = sigmoid(2 x): no cancellation.
    return dy * (4.0f * hk_sigmoid_slope_f32(2.0f * x));
}

// One unit more than the others: cap * tanh(x / cap).
HK_SCALAR float hk_softcap_f32(float x, float cap) {
    return cap * hk_tanh_f32(x / cap);
}

// With respect to x.
HK_SCALAR float hk_softcap_grad_f32(float dy, float x, float cap) {
    return hk_tanh_grad_f32(dy, x / cap);
}

HK_SCALAR float hk_relu_f32(float x) {
    return x < 0.0f ? 0.0f : x; // NaN stays.
}

HK_SCALAR float hk_relu_grad_f32(float dy, float x) {
    return x > 0.0f ? dy : 0.0f;
}

// gelu, tanh form: x sigmoid(2 u) with u = sqrt(2 / pi) (x + 0.044715 x^3).
HK_SCALAR float hk_gelu_f32(float x) {
    return x * hk_sigmoid_f32(x * (1.5957691216f + 0.0713548163f * (x * x)));
}

HK_SCALAR float hk_gelu_grad_f32(float dy, float x) {
    const float s = x * x;
    const float u2 = x * (1.5957691216f + 0.0713548163f * s);
    const float du2 = 1.5957691216f + 0.2140644488f * s;
    // Where the product of the sigmoids is 0, x * du2 may be infinite: clamp x, not the result.
    const float bounded = s < 400.0f ? x * du2 : 0.0f;
    return dy * (hk_sigmoid_f32(u2) + bounded * hk_sigmoid_slope_f32(u2));
}

// exp(-x^2 / 2), x^2 in two parts: its rounding would be multiplied by x^2 / 2.
HK_SCALAR float hk_gauss_f32(float x) {
    const float t = fabsf(x) < 20.0f ? fabsf(x) : 20.0f;
    int32_t bits;
    memcpy(&bits, &t, sizeof bits);
    bits &= ~0xfff;
    float high; // The upper 12 bits of t: its square is exact.
    memcpy(&high, &bits, sizeof high);
    const float y = -0.5f * (t - high) * (t + high); // Small: |y| <= 2^-12 t^2.
    const float tail = 1.0f + y * (1.0f + y * (0.5f + y * (1.0f / 6.0f)));
    return hk_exp_f32(-0.5f * high * high) * tail;
}

// The normal distribution's lower tail at -t, t >= 0: exp(-t^2 / 2) times a smooth factor.
HK_SCALAR float hk_normal_tail_f32(float t) {
    const float bounded = t < 15.0f ? t : 15.0f;
    const float z = (bounded - 4.0f) / (bounded + 4.0f);
    float q = -0x1.2c5c4cp-14f;
    q = q * z - 0x1.fbfd26p-15f;
    q = q * z + 0x1.6b4204p-11f;
    q = q * z - 0x1.3e83f2p-12f;
    q = q * z - 0x1.47f79cp-8f;
    q = q * z + 0x1.25eeaap-6f;
    q = q * z - 0x1.07c292p-5f;
    q = q * z + 0x1.d49504p-6f;
    q = q * z + 0x1.cabd20p-7f;
    q = q * z - 0x1.8c18f0p-4f;
    q = q * z + 0x1.e361eap-2f;
    return hk_gauss_f32(t) * (q / (1.0f + bounded));
}

HK_SCALAR float hk_normal_f32(float x) {
    const float tail = hk_normal_tail_f32(fabsf(x));
    return x < 0.0f ? tail : 1.0f - tail;
}

// gelu, exact form: x times the normal distribution function.
HK_SCALAR float hk_gelu_erf_f32(float x) {
    return x * hk_normal_f32(x);
}

HK_SCALAR float hk_gelu_erf_grad_f32(float dy, float x) {
    const float bounded = fabsf(x) < 20.0f ? x : 0.0f; // The density is 0 there.
    return dy * (hk_normal_f32(x) + bounded * 0.3989422804f * hk_gauss_f32(x));
}

HK_SCALAR double hk_exp_f64(double x) {
    return exp(x);
}

HK_SCALAR double hk_sigmoid_f64(double x) {
    return 1.0 / (1.0 + exp(-x));
}

HK_SCALAR double hk_sigmoid_slope_f64(double x) {
    const double e = hk_exp_f64(-x), s = hk_sigmoid_f64(x);
    return e > DBL_MAX ? 0.0 : s * (e * s); // NaN stays.
}

HK_SCALAR double hk_sigmoid_grad_f64(double dy, double x) {
    return dy * hk_sigmoid_slope_f64(x);
}

HK_SCALAR double hk_softplus_f64(double x) {
    return (x < 0.0 ? 0.0 : x) + log1p(hk_exp_f64(-fabs(x)));
}

HK_SCALAR double hk_softplus_grad_f64(double dy, double x) {
    return dy * hk_sigmoid_f64(x);
}

HK_SCALAR double hk_silu_f64(double x) {
    return x * hk_sigmoid_f64(x);
}

HK_SCALAR double hk_silu_grad_f64(double dy, double x) {
    return dy * (hk_sigmoid_f64(x) + x * hk_sigmoid_slope_f64(x));
}

HK_SCALAR double hk_tanh_f64(double x) {
    return tanh(x);
}

HK_SCALAR double hk_tanh_grad_f64(double dy, double x) {
    return dy * (4.0 * hk_sigmoid_slope_f64(2.0 * x));
}

HK_SCALAR double hk_softcap_f64(double x, double cap) {
    return cap * hk_tanh_f64(x / cap);
}

HK_SCALAR double hk_softcap_grad_f64(double dy, double x, double cap) {
    return hk_tanh_grad_f64(dy, x / cap);
}

HK_SCALAR double hk_relu_f64(double x) {
    return x < 0.0 ? 0.0 : x;
}

HK_SCALAR double hk_relu_grad_f64(double dy, double x) {
    return x > 0.0 ? dy : 0.0;
}

HK_SCALAR double hk_gelu_f64(double x) {
    return x * hk_sigmoid_f64(x * (1.5957691216057308 + 0.07135481627260025 * (x * x)));
}

HK_SCALAR double hk_gelu_grad_f64(double dy, double x) {
    const double u2 = x * (1.5957691216057308 + 0.07135481627260025 * (x * x));
    const double du2 = 1.5957691216057308 + 0.21406444881780075 * (x * x);
    const double bounded = x * x < 2000.0 ? x * du2 : 0.0;
    return dy * (hk_sigmoid_f64(u2) + bounded * hk_sigmoid_slope_f64(u2));
}

HK_SCALAR double hk_normal_f64(double x) {
    return 0.5 * erfc(-x * 0.7071067811865476);
}

HK_SCALAR double hk_gelu_erf_f64(double x) {
    return x * hk_normal_f64(x);
}

HK_SCALAR double hk_gelu_erf_grad_f64(double dy, double x) {
    return dy * (hk_normal_f64(x) + x * 0.3989422804014327 * exp(-0.5 * x * x));
}

#endif
