// device: all that the kernels in *_cuda.cu include. nvcc finds NVIDIA's headers here; g++, which builds the same
// files for tests on a CPU, finds an emulator of the names that they use (tests/simt). A feature without a name in CUDA
// C++ is a function here or in instructions.h with two bodies.
#ifndef HECATE_KERNELS_CUDA_DEVICE_H
#define HECATE_KERNELS_CUDA_DEVICE_H

#include <assert.h>
#include <stdint.h>

#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_runtime.h>
// A kernel's dynamic shared memory, as bytes.
#define HKC_SHARED(name) extern __shared__ __align__(1024) unsigned char name[]
#else
#include <simt.h>
#define HKC_SHARED(name) unsigned char *const name = simt::dynamic_shared()
#endif

#include "kernels/bf16.h"
#include "kernels/cuda/lane.h"

// The architectures of this build; see lane.h.
#ifndef HKC_ARCHITECTURES
#define HKC_ARCHITECTURES "sm_80 sm_90a sm_100 compute_80 compute_90"
#endif

#define HKC_DEVICE __device__ __forceinline__
// For functions that touch their thread's registers only: the race detector need not see them.
#ifdef __CUDACC__
#define HKC_REGISTERS HKC_DEVICE
#else
#define HKC_REGISTERS SIMT_QUIET
#endif
#define HKC_HOST_DEVICE __host__ __device__ __forceinline__

// Launches `kernel` on the lane's stream, unless an earlier launch failed; a grid of no blocks is no launch.
#define hkc_launch(lane, kernel, ...) hkc_launch_named(lane, #kernel, kernel, __VA_ARGS__)

template <class... P, class... A>
void hkc_launch_named(struct hkc_lane *lane, const char *name, void (*kernel)(P...), dim3 grid,
                      dim3 block, size_t shared_bytes, A... arguments) {
    if (lane->error || grid.x == 0 || grid.y == 0 || grid.z == 0) return;
    cudaError_t error = cudaSuccess;
    if (shared_bytes > 48 << 10) {
        error = cudaFuncSetAttribute(
            (const void *)kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared_bytes);
    }
#ifdef __CUDACC__
    if (error == cudaSuccess) {
        cudaLaunchConfig_t config = {};
        config.gridDim = grid;
        config.blockDim = block;
        config.dynamicSmemBytes = shared_bytes;
        config.stream = lane->stream;
        error = cudaLaunchKernelEx(&config, kernel, (P)arguments...);
    }
#else
    if (error == cudaSuccess) {
        error = simt::launch<P...>(lane->stream, name, grid, block, shared_bytes, kernel,
                                   (P)arguments...);
    }
#endif
    lane->error = (int)error;
    if (error != cudaSuccess) lane->failed = name;
}

// Whether the driver has code of `kernel` for the current device: a cudaError_t.
inline int hkc_code_of(void (*kernel)()) {
#ifdef __CUDACC__
    cudaFuncAttributes attributes;
    const cudaError_t error = cudaFuncGetAttributes(&attributes, (const void *)kernel);
    if (error != cudaSuccess) cudaGetLastError(); // The next launch would report it again.
    return (int)error;
#else
    return simt::code_of(kernel, HKC_ARCHITECTURES);
#endif
}

// N neighbours, read and written by instructions of up to 16 bytes.
constexpr size_t hkc_alignment(size_t bytes) {
    return bytes < 16 ? bytes : 16;
}
template <class T, int N> struct alignas(hkc_alignment(sizeof(T) * N)) hkc_vector { T at[N]; };

// A value in memory is float or bf16; arithmetic is float. (T)x rounds to the nearest, ties to even.
HKC_DEVICE float hkc_float(float x) {
    return x;
}
HKC_DEVICE float hkc_float(__nv_bfloat16 x) {
    return __bfloat162float(x);
}
template <class T, int N> HKC_DEVICE hkc_vector<float, N> hkc_floats(const hkc_vector<T, N> &read) {
    hkc_vector<float, N> out;
    for (int i = 0; i < N; i++) out.at[i] = hkc_float(read.at[i]);
    return out;
}
template <class T, int N> HKC_DEVICE hkc_vector<T, N> hkc_stored(const hkc_vector<float, N> &x) {
    hkc_vector<T, N> out;
    for (int i = 0; i < N; i++) out.at[i] = (T)x.at[i];
    return out;
}

// Values of bf16 by the name that kernels have for them.
inline __nv_bfloat16 *hkc_values(hk_bf16 *values) {
    return (__nv_bfloat16 *)values;
}
inline const __nv_bfloat16 *hkc_values(const hk_bf16 *values) {
    return (const __nv_bfloat16 *)values;
}

// Sum and maximum over the 32 lanes of a warp, which all take part and all get the result; in one fixed order.
template <class T> HKC_DEVICE T warp_sum(T value) {
    for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(~0u, value, step);
    return value;
}
template <class T> HKC_DEVICE T warp_max(T value) {
    for (int step = 16; step > 0; step /= 2) {
        const T other = __shfl_xor_sync(~0u, value, step);
        value = other > value ? other : value;
    }
    return value;
}

// Over a block of whole warps, in one fixed order: by warps, then over warps ascending. `parts` is shared memory, a
// number for each warp, that nobody else uses before the next barrier of the block behind this one.
template <class T> HKC_DEVICE T block_sum(T value, T *parts) {
    value = warp_sum(value);
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
    __syncthreads();
    T sum = parts[0];
    for (int i = 1; i < (int)blockDim.x / 32; i++) sum += parts[i];
    return sum;
}
template <class T> HKC_DEVICE T block_max(T value, T *parts) {
    value = warp_max(value);
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
    __syncthreads();
    T most = parts[0];
    for (int i = 1; i < (int)blockDim.x / 32; i++) most = parts[i] > most ? parts[i] : most;
    return most;
}

#include "kernels/cuda/instructions.h"

#endif
