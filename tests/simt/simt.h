// simt: the names of CUDA C++ that kernels use, on the CPU; see README.md. Types and the arithmetic of bf16 come from
// NVIDIA's own headers. kernels/cuda/device.h includes this under g++.
#ifndef HECATE_TESTS_SIMT_SIMT_H
#define HECATE_TESTS_SIMT_SIMT_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include <new>
#include <tuple>
#include <type_traits>

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include "fiber.h"
#include "matrix.h"
#include "warp.h"

#undef __shared__
#undef __launch_bounds__
// Not in templates: g++ drops the section there.
#define __shared__ static __attribute__((section("simt_shared")))
// A kernel begins with an instruction that does nothing for each warp that a block may have: launch.cpp counts them.
#define __launch_bounds__(threads, ...)                                                            \
    __attribute__((patchable_function_entry(((threads) + 31) / 32, 0)))

#define threadIdx (simt::own_thread())
#define blockIdx (simt::own_block())
#define blockDim (simt::own_block_size())
#define gridDim (simt::own_grid_size())
#define warpSize 32

namespace simt {

// A kernel and its arguments, kept as bytes from the launch until the stream comes to it.
template <class... P> struct packed_t {
    void (*kernel)(P...);
    std::tuple<P...> arguments;
};

template <class... P> void call_packed(const void *bytes) {
    const packed_t<P...> &packed = *(const packed_t<P...> *)bytes;
    std::apply(packed.kernel, packed.arguments);
}

template <class... P>
cudaError_t launch(cudaStream_t stream, const char *name, dim3 grid, dim3 block,
                   size_t shared_bytes, void (*kernel)(P...), P... arguments) {
    static_assert((std::is_trivially_copyable<P>::value && ...), "arguments are copied as bytes");
    static_assert(sizeof(packed_t<P...>) <= ARGUMENTS_MAX, "too many arguments");
    check_launch(name, (const void *)kernel, grid, block, shared_bytes);
    alignas(16) unsigned char bytes[ARGUMENTS_MAX] = {};
    new (bytes) packed_t<P...>{kernel, std::tuple<P...>(arguments...)};
    return submit(stream, name, grid, block, shared_bytes, call_packed<P...>, bytes);
}

template <class T, class F> SIMT_QUIET T atomic(T *p, F change) {
    touch(p, sizeof *p, ATOMIC);
    const T old = *p;
    *p = change(old);
    if (chance(4) == 1) yield();
    return old;
}

template <class A, class B> using common = typename std::common_type<A, B>::type;
template <class T> using same = typename std::common_type<T>::type; // Not deduced.

} // namespace simt

template <class T> T atomicAdd(T *p, simt::same<T> v) {
    return simt::atomic(p, [=](T old) SIMT_UNSEEN { return (T)(old + v); });
}
template <class T> T atomicMax(T *p, simt::same<T> v) {
    return simt::atomic(p, [=](T old) SIMT_UNSEEN { return old > v ? old : v; });
}
template <class T> T atomicMin(T *p, simt::same<T> v) {
    return simt::atomic(p, [=](T old) SIMT_UNSEEN { return old < v ? old : v; });
}
template <class T> T atomicOr(T *p, simt::same<T> v) {
    return simt::atomic(p, [=](T old) SIMT_UNSEEN { return (T)(old | v); });
}
template <class T> T atomicExch(T *p, simt::same<T> v) {
    return simt::atomic(p, [=](T) SIMT_UNSEEN { return v; });
}
template <class T> T atomicCAS(T *p, simt::same<T> expected, simt::same<T> v) {
    return simt::atomic(p, [=](T old) SIMT_UNSEEN { return old == expected ? v : old; });
}

template <class T> T __ldg(const T *p) {
    return *p;
}
template <class T> T __ldcs(const T *p) {
    return *p;
}
template <class T> void __stcs(T *p, T v) {
    *p = v;
}
inline size_t __cvta_generic_to_shared(const void *p) {
    return simt::shared_offset(p);
}

// Blocks run one after the other: each sees all writes of those before.
inline void __threadfence() {
}

inline float __expf(float x) {
    return expf(x);
}
inline float __logf(float x) {
    return logf(x);
}
inline float __fdividef(float a, float b) {
    return a / b;
}
inline float rsqrtf(float x) {
    return 1 / sqrtf(x);
}
inline float __fmaf_rn(float a, float b, float c) {
    return fmaf(a, b, c);
}
inline int __popc(unsigned x) {
    return __builtin_popcount(x);
}
inline int __ffs(int x) {
    return __builtin_ffs(x);
}
inline int __clz(int x) {
    return x ? __builtin_clz((unsigned)x) : 32;
}
inline int __float_as_int(float x) {
    int bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}
inline float __int_as_float(int bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}
template <class A, class B> simt::common<A, B> min(A a, B b) {
    typedef simt::common<A, B> T;
    return (T)b < (T)a ? (T)b : (T)a;
}
template <class A, class B> simt::common<A, B> max(A a, B b) {
    typedef simt::common<A, B> T;
    return (T)a < (T)b ? (T)b : (T)a;
}

#endif
