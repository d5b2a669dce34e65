// product_wgmma: sums of bf16 products by tensor cores that read shared memory themselves (wgmma, sm_90a).
//
// A block has two warpgroups. In a tile of 128 rows each has 64 of them, in a lower one each has half of the
// columns: 64 rows are the least that a wgmma computes.
#ifndef HECATE_KERNELS_CUDA_PRODUCT_WGMMA_H
#define HECATE_KERNELS_CUDA_PRODUCT_WGMMA_H

#include "kernels/cuda/product.h"
#include "kernels/cuda/warpgroup.h"

namespace product {

struct wgmma_async {
    typedef __nv_bfloat16 value;
    static constexpr bool EXISTS = HKC_WARPGROUPS;
    static constexpr int LINE = 128, THREADS = 256, HELD = 2, STAGES = 3, TERMS = 4096;
    // From one 64 rows or columns to the next: in either case they are together.
    static constexpr int HALF = 64 * LINE;
    template <major M> static HKC_DEVICE int place(int line, int piece) {
        const int block = M == K_MAJOR ? 0 : piece / 8 * HALF;
        return block + line * LINE + ((piece % 8 ^ (line & 7)) << 4);
    }
    template <major LEFT, major RIGHT, int H> struct sums;
};

#if HKC_WARPGROUPS

// 16 terms further.
template <major M> constexpr int TERMS_BYTES = M == K_MAJOR ? 16 * 2 : 16 * wgmma_async::LINE;

template <major LEFT, major RIGHT, int H> struct wgmma_async::sums {
    static constexpr int COLUMNS = H == 128 ? WIDTH : WIDTH / 2, APART = COLUMNS / 16;
    float sum[COLUMNS / 2];

    // The warpgroup, by a shuffle: so the compiler knows that the whole warp agrees.
    static HKC_DEVICE int group() {
        return __shfl_sync(~0u, thread() / 128, 0);
    }

    HKC_DEVICE void zero() {
        for (int i = 0; i < COLUMNS / 2; i++) sum[i] = 0;
    }

    HKC_DEVICE void add(const unsigned char *left, const unsigned char *right) {
        const uint32_t half = (uint32_t)group() * HALF;
        const uint32_t a = shared_address(left) + (H == 128 ? half : 0);
        const uint32_t b = shared_address(right) + (H == 128 ? 0 : half);
        wgmma_fence();
#pragma unroll
        for (uint32_t k = 0; k < DEPTH<wgmma_async> / 16; k++) {
            wgmma<LEFT, RIGHT>(sum, wgmma_operand(a + k * TERMS_BYTES<LEFT>, HALF),
                               wgmma_operand(b + k * TERMS_BYTES<RIGHT>, HALF));
        }
        wgmma_commit();
    }

    // Also makes this thread's copies visible to the next wgmma.
    HKC_DEVICE void finish() {
        async_fence();
#if HKC_FAULT != 4 // plain of products_bf16: operands are overwritten while they are multiplied.
        wgmma_wait<0>();
#endif
    }

    template <class OUT> HKC_DEVICE void store(const result<OUT> &out) {
        const int number = thread(), lane = number % 32, warp = number / 32 % 4;
        const int row = number / 128 * (H == 128 ? 64 : 0) + warp * 16 + lane / 4;
        const int column = number / 128 * (H == 128 ? 0 : 64) + lane % 4 * 2;
#pragma unroll
        for (int i = 0; i < 2 * COLUMNS;
             i += 64) { // 64 columns of one of the two rows: registers are few.
            const int half = i / COLUMNS, j = i % COLUMNS;
            write<2, 8, 4>(out, row + half * 8, column + j, 8, sum + j / 2 + half * 2);
        }
    }

    // Half of the columns are of one matrix, then the same of the other.
    template <class OUT> HKC_DEVICE void store(const pairs<OUT> &out) {
        const int number = thread(), lane = number % 32, warp = number / 32 % 4;
        const int row = number / 128 * (H == 128 ? 64 : 0) + warp * 16 + lane / 4;
        const int column = number / 128 * (H == 128 ? 0 : 32) + lane % 4 * 2;
#pragma unroll
        for (int half = 0; half < 2; half++) {
#pragma unroll
            for (int j = 0; j < COLUMNS / 2; j += 8) {
                const float *const ab = sum + j / 2 + half * 2;
                write_pair<2>(out, row + half * 8, column + j, ab, ab + 4 * APART);
            }
        }
    }
};

#endif

} // namespace product

#endif
