// Loops over elements as kernels: included by the kernels of emitted programs (codegen/cuda).
#ifndef HECATE_KERNELS_CUDA_LOOP_H
#define HECATE_KERNELS_CUDA_LOOP_H

#include <string.h>

#include "kernels/bf16.h"
#include "kernels/cuda/device.h"
#include "kernels/scalar.h"

// Elements of bf16 as the host's part of a program calls them.
HKC_DEVICE float hkc_float(hk_bf16 x) {
    __nv_bfloat16 value;
    static_assert(sizeof value == sizeof x);
    memcpy((void *)&value, &x, sizeof value);
    return __bfloat162float(value);
}
// To the nearest, ties to even.
HKC_DEVICE hk_bf16 hkc_bf16(float x) {
    const __nv_bfloat16 value = __float2bfloat16_rn(x);
    hk_bf16 rounded;
    memcpy(&rounded, &value, sizeof rounded);
    return rounded;
}

// The body runs once for each `i` from 0 to `count` - 1, shared among all threads of the grid. No iteration may
// depend on another one.
#define HKC_FOR(i, count)                                                                          \
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < (count);                  \
         i += (int64_t)gridDim.x * blockDim.x)

// N neighbours from `from`, and to `to`, by accesses of up to 16 bytes, of which both are multiples.
template <int N, class T> HKC_DEVICE hkc_vector<T, N> hkc_read(const T *from) {
    HKC_EMULATED(simt::check_aligned(from, alignof(hkc_vector<T, N>)));
    return *(const hkc_vector<T, N> *)from;
}
template <class T, int N> HKC_DEVICE void hkc_write(T *to, const hkc_vector<T, N> &neighbours) {
    HKC_EMULATED(simt::check_aligned(to, alignof(hkc_vector<T, N>)));
    if constexpr (N == 1) {
        *to = neighbours.at[0];
    } else {
        uint4 parts[sizeof neighbours / sizeof(uint4)];
        static_assert(sizeof parts == sizeof neighbours);
        memcpy(parts, &neighbours, sizeof parts);
        for (int i = 0; i < (int)(sizeof parts / sizeof *parts); i++)
            store16((uint4 *)to + i, parts[i]);
    }
}

// Whether all pointers are multiples of 16 bytes.
template <class... T> bool hkc_aligned(const T *...pointer) {
    return (((uintptr_t)pointer % 16 == 0) && ...);
}

// The same for less than a block of threads: no loop, which the compiler would unroll.
#define HKC_REST(i, count) if (const int64_t i = threadIdx.x; blockIdx.x == 0 && i < (count))

// Launches `kernel`, whose body is such a loop, with as many threads as have something to do or as the device has
// room for. Its arguments follow. No element tells whose thread computed it, so the device may be asked.
#define hkc_launch_loop(lane, kernel, count, ...)                                                  \
    hkc_launch(lane, kernel, hkc_loop_blocks(lane, count), HKC_LOOP_THREADS, 0, __VA_ARGS__)

// The same of a kernel for N neighbours a thread and for what is left, N = `width` where they fit, else 1.
#define hkc_launch_vectors(lane, kernel, width, fit, count, ...)                                   \
    do {                                                                                           \
        if (fit) {                                                                                 \
            hkc_launch_loop(lane, kernel<width>, ((count) + (width)-1) / (width), __VA_ARGS__);    \
        } else {                                                                                   \
            hkc_launch_loop(lane, kernel<1>, count, __VA_ARGS__);                                  \
        }                                                                                          \
    } while (0)

enum { HKC_LOOP_THREADS = 256, HKC_LOOP_BLOCKS = 16 }; // A block; blocks on each multiprocessor.

inline unsigned hkc_loop_blocks(const struct hkc_lane *lane, int64_t count) {
    const int64_t most =
        (int64_t)(lane->multiprocessors > 0 ? lane->multiprocessors : 1) * HKC_LOOP_BLOCKS;
    const int64_t blocks = (count + HKC_LOOP_THREADS - 1) / HKC_LOOP_THREADS;
    return (unsigned)(blocks < most ? blocks : most);
}

#endif
