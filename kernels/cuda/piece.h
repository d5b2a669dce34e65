// piece: 16 bytes on their way from device memory to shared memory, where they do not lie at a multiple of 16.
#ifndef HECATE_KERNELS_CUDA_PIECE_H
#define HECATE_KERNELS_CUDA_PIECE_H

#include "kernels/cuda/device.h"

namespace hkc {

// Whether lines of `stride` values from `at` on lie at multiples of 16 bytes.
template <class T> HKC_DEVICE bool is_wide(const T *at, int64_t stride) {
    return ((uint64_t)at | (uint64_t)stride * sizeof(T)) % 16 == 0;
}

// `exist` of a piece's values, the others as zeros.
HKC_DEVICE void copy_values(unsigned char *to, const float *from, int exist) {
#pragma unroll
    for (int i = 0; i < 4; i++) copy4(shared_address(to) + i * 4, from + i, i < exist ? 4 : 0);
}

HKC_DEVICE void copy_values(unsigned char *to, const __nv_bfloat16 *from, int exist) {
    hkc_vector<__nv_bfloat16, 8> values;
#pragma unroll
    for (int i = 0; i < 8; i++) {
        values.at[i] = i < exist ? from[i] : __nv_bfloat16(0.0f);
    }
    *(hkc_vector<__nv_bfloat16, 8> *)to = values;
}

} // namespace hkc

#endif
