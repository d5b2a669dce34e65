// product_wgmma: sums of bf16 products by tensor cores that read shared memory themselves (wgmma, sm_90a).
//
// A block has two warpgroups. In a tile of 128 rows each has 64 of them, in a lower one each has half of the
// columns: 64 rows are the least that a wgmma computes.
#ifndef HECATE_KERNELS_CUDA_PRODUCT_WGMMA_H
#define HECATE_KERNELS_CUDA_PRODUCT_WGMMA_H

#include "kernels/cuda/product.h"
#include "kernels/cuda/warpgroup.h"

namespace product {

// Tiles of 128 columns, by two blocks of a multiprocessor, each of which waits for its sums before it asks for more; or
// of 256 columns, which read three quarters of the bytes for as many products, by one block that takes all registers.
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

// Four lanes have two neighbours each, from[0] and from[1], of eight columns of a row, then of the next eight, four
// times. Lane l takes the l-th eight columns: together they transpose a matrix of 4 x 4 pairs.
HKC_DEVICE void take_neighbours(float *to, const float *from, int lane) {
#pragma unroll
    for (int i = 0; i < 8; i++) to[i] = from[i / 2 * 4 + i % 2];
#pragma unroll
    for (int step = 1; step < 4; step *= 2) {
        const bool high = lane & step;
#pragma unroll
        for (int i = 0; i < 8; i++) {
            if (i / 2 & step) continue;
            float *const a = to + i, *const b = to + i + 2 * step;
            const float got = __shfl_xor_sync(~0u, high ? *a : *b, step);
            *a = high ? got : *a;
            *b = high ? *b : got;
        }
    }
}

template <int COLUMNS_OF_TILE>
template <major LEFT, major RIGHT, int H>
struct wgmma_async<COLUMNS_OF_TILE>::sums {
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
        wgmma_wait<LEFT_OVER>();
    }

    template <class OUT> HKC_DEVICE void store(const result<OUT> &out) {
        constexpr bool BF16 = sizeof(OUT) == sizeof(value); // 16 bytes of a row, or two neighbours.
        const int number = thread(), lane = number % 32, warp = number / 32 % 4;
        const int row = number / 128 * (H == 128 ? 64 : 0) + warp * 16 + lane / 4;
        const int column = number / 128 * (H == 128 ? 0 : COLUMNS) + lane % 4 * (BF16 ? 8 : 2);
#pragma unroll
        for (int i = 0; i < 2 * COLUMNS; i += 64) { // Parts of one row: registers are few.
            const int half = i / COLUMNS, j = i % COLUMNS;
            const float *const from = sum + j / 2 + half * 2;
            if constexpr (BF16) {
                float all[16];
                take_neighbours(all, from, lane);
                take_neighbours(all + 8, from + 16, lane);
                write<8, 2, 8>(out, row + half * 8, column + j, 32, all);
            } else {
                write<2, 8, 4>(out, row + half * 8, column + j, 8, from);
            }
        }
    }

    // Half of the columns are of one matrix, then the same of the other.
    template <class OUT> HKC_DEVICE void store(const pairs<OUT> &out) {
        const int number = thread(), lane = number % 32, warp = number / 32 % 4;
        const int row = number / 128 * (H == 128 ? 64 : 0) + warp * 16 + lane / 4;
        const int column = number / 128 * (H == 128 ? 0 : COLUMNS / 2) + lane % 4 * 8;
#pragma unroll
        for (int half = 0; half < 2; half++) {
#pragma unroll
            for (int j = 0; j < COLUMNS / 2; j += 32) {
                const float *const from = sum + j / 2 + half * 2;
                float ab[8], ac[8];
                take_neighbours(ab, from, lane);
                take_neighbours(ac, from + 4 * APART, lane);
                write_pair<8>(out, row + half * 8, column + j, ab, ac);
            }
        }
    }
};

#endif

} // namespace product

#endif
