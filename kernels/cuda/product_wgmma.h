// product_wgmma: sums of bf16 products by tensor cores that read shared memory themselves (wgmma, sm_90a).
//
// A block has two warpgroups. In a tile of 128 rows each has 64 of them, in a lower one each has half of the
// columns: 64 rows are the least that a wgmma computes.
#ifndef HECATE_KERNELS_CUDA_PRODUCT_WGMMA_H
#define HECATE_KERNELS_CUDA_PRODUCT_WGMMA_H

#include "kernels/cuda/product.h"
#include "kernels/cuda/warpgroup.h"

namespace product {

// Tiles of 128 columns, by two blocks of a multiprocessor, each of which waits for its sums before it asks for more; or of
// 256 columns, which read three quarters of the bytes for as many products, by one block that takes all registers.
template <int COLUMNS_OF_TILE> struct wgmma_async {
    typedef __nv_bfloat16 value;
    static constexpr bool EXISTS = HKC_WARPGROUPS;
    static constexpr int WIDTH = COLUMNS_OF_TILE, LINE = 128, THREADS = 256, TERMS = 4096;
    static constexpr int HELD = WIDTH == 128 ? 2 : 1, STAGES = WIDTH == 128 ? 3 : 4;
    static constexpr int UNDER_WAY = WIDTH == 128 ? 0 : 1;
    // From one 64 rows or columns to the next: in either case they are together.
    static constexpr int HALF = 64 * LINE;
    // 16 terms further.
    template <major M> static constexpr int TERMS_BYTES = M == K_MAJOR ? 16 * 2 : 16 * LINE;
    template <major M> static HKC_DEVICE int place(int line, int piece) {
        const int block = M == K_MAJOR ? 0 : piece / 8 * HALF;
        return block + line * LINE + ((piece % 8 ^ (line & 7)) << 4);
    }
    template <major LEFT, major RIGHT, int H> struct sums;
};

#if HKC_WARPGROUPS

template <int COLUMNS_OF_TILE>
template <major LEFT, major RIGHT, int H>
struct wgmma_async<COLUMNS_OF_TILE>::sums {
    static constexpr int COLUMNS = H == 128 ? WIDTH : WIDTH / 2, APART = COLUMNS / 16;
    static constexpr int LATE =
        HKC_FAULT == 12; // plain of products_bf16: so they are in wide tiles.
    static constexpr int SWAPPED =
        HKC_FAULT == 13; // plain of products_bf16: 128 columns, by others.
    float sum[COLUMNS / 2];

    // The warpgroup, by a shuffle: so the compiler knows that the whole warp agrees.
    static HKC_DEVICE int group() {
        return __shfl_sync(~0u, thread() / 128, 0);
    }

    HKC_DEVICE void zero() {
        for (int i = 0; i < COLUMNS / 2; i++) sum[i] = 0;
    }

    HKC_DEVICE void add(const unsigned char *left, const unsigned char *right) {
        const uint32_t number = (uint32_t)group();
        const uint32_t a = shared_address(left) + (H == 128 ? number * HALF : 0);
        const uint32_t b = shared_address(right) + (H == 128 ? 0 : number * (COLUMNS / 64) * HALF);
        wgmma_fence();
#pragma unroll
        for (uint32_t k = 0; k < DEPTH<wgmma_async> / 16; k++) {
            wgmma<LEFT, RIGHT>(sum, wgmma_operand(a + k * TERMS_BYTES<LEFT>, HALF),
                               wgmma_operand(b + k * TERMS_BYTES<RIGHT>, HALF));
        }
        wgmma_commit();
    }

    // Also makes this thread's copies visible to the next wgmma.
    template <int LEFT_OVER> HKC_DEVICE void finish() {
        async_fence();
#if HKC_FAULT != 4 // plain of products_bf16: operands are overwritten while they are multiplied.
        wgmma_wait<LEFT_OVER *(1 + LATE)>();
#endif
    }

    template <class OUT> HKC_DEVICE void store(const result<OUT> &out) {
        const int number = thread(), lane = number % 32, warp = number / 32 % 4;
        const int row = number / 128 * (H == 128 ? 64 : 0) + warp * 16 + lane / 4;
        const int column = number / 128 * (H == 128 ? 0 : COLUMNS) + lane % 4 * 2;
#pragma unroll
        for (int i = 0; i < 2 * COLUMNS;
             i += 64) { // 64 columns of one of the two rows: registers are few.
            const int half = i / COLUMNS, j = i % COLUMNS;
            const int from = COLUMNS == 256 ? j ^ SWAPPED * 128 : j;
            write<2, 8, 4>(out, row + half * 8, column + j, 8, sum + from / 2 + half * 2);
        }
    }

    // Half of the columns are of one matrix, then the same of the other.
    template <class OUT> HKC_DEVICE void store(const pairs<OUT> &out) {
        const int number = thread(), lane = number % 32, warp = number / 32 % 4;
        const int row = number / 128 * (H == 128 ? 64 : 0) + warp * 16 + lane / 4;
        const int column = number / 128 * (H == 128 ? 0 : COLUMNS / 2) + lane % 4 * 2;
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
