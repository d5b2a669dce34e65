// product_mma: sums of bf16 products by tensor cores (mma.sync.m16n8k16), which add in float.
//
// The four warps of a block are two rows of two, and have up to 64 x 64 elements each; a tile of 16 rows
// has them side by side. Fragments come by ldmatrix, transposed on the way where terms are not contiguous
// (MN_MAJOR).
#ifndef HECATE_KERNELS_CUDA_PRODUCT_MMA_H
#define HECATE_KERNELS_CUDA_PRODUCT_MMA_H

#include "kernels/cuda/product.h"

namespace product {

struct mma_sync {
    typedef __nv_bfloat16 value;
    static constexpr bool EXISTS = true;
    static constexpr int WIDTH = 128, LINE = 64, THREADS = 128, HELD = 2, STAGES = 4, UNDER_WAY = 0,
                         TERMS = 4096;
    // From a line to the 16th below it: pieces are exchanged alike in both.
    static constexpr int LINES_BELOW = 16 * LINE, TERMS_BELOW = 16 * WIDTH * (int)sizeof(value);
    template <major M> static HKC_DEVICE int place(int line, int piece) {
        // Eight lines' pieces at one place, which ldmatrix reads at once, hit all banks.
        if (M == K_MAJOR) return line * LINE + ((piece ^ (line >> 1 & 3)) << 4);
        return line * WIDTH * (int)sizeof(value) + ((piece ^ (line & 7)) << 4);
    }
    template <major LEFT, major RIGHT, int H> struct sums;
};

// Fragment `i` of the left operand, 16 x 16: rows from `row` + 16 * i, terms from 16 * k.
template <major M>
HKC_DEVICE void read_left(uint32_t (&a)[4], const unsigned char *at, int row, int i, int k,
                          int lane) {
    if (M == K_MAJOR) {
        const int line = row + lane % 16;
        load4(a, shared_address(at + mma_sync::place<M>(line, k * 2 + lane / 16) +
                                i * mma_sync::LINES_BELOW));
    } else {
        const int term = lane / 16 * 8 + lane % 8, piece = row / 8 + i * 2 + lane / 8 % 2;
        load4_transposed(
            a, shared_address(at + mma_sync::place<M>(term, piece) + k * mma_sync::TERMS_BELOW));
    }
}

// 16 terms of 16 columns of the right operand: b[0], b[1] for the first eight, b[2], b[3] for the others.
template <major M>
HKC_DEVICE void read_right(uint32_t (&b)[4], const unsigned char *at, int column, int j, int k,
                           int lane) {
    if (M == K_MAJOR) {
        const int line = column + lane % 8 + lane / 16 * 8;
        load4(b, shared_address(at + mma_sync::place<M>(line, k * 2 + lane / 8 % 2) +
                                j * mma_sync::LINES_BELOW));
    } else {
        const int piece = column / 8 + j * 2 + lane / 16;
        load4_transposed(b, shared_address(at + mma_sync::place<M>(lane % 16, piece) +
                                           k * mma_sync::TERMS_BELOW));
    }
}

template <major LEFT, major RIGHT, int H> struct mma_sync::sums {
    static constexpr int DOWN = H == 16 ? 1 : 2, WARP_ROWS = H / DOWN;
    static constexpr int WARP_COLUMNS = WIDTH * DOWN / (THREADS / 32);
    static constexpr int ROWS = WARP_ROWS / 16, COLUMNS = WARP_COLUMNS / 8, APART = COLUMNS / 2;
    float sum[ROWS][COLUMNS][4];
    int row, column, lane;

    HKC_DEVICE void find() {
        const int number = thread(), warp = number / 32;
        lane = number % 32;
        row = warp % DOWN * WARP_ROWS;
        column = warp / DOWN * WARP_COLUMNS;
    }

    HKC_DEVICE void zero() {
        find();
        for (int i = 0; i < ROWS; i++) {
            for (int j = 0; j < COLUMNS; j++) {
                for (int r = 0; r < 4; r++) sum[i][j][r] = 0;
            }
        }
    }

    HKC_DEVICE void add(const unsigned char *left, const unsigned char *right) {
#pragma unroll
        for (int k = 0; k < DEPTH<mma_sync> / 16; k++) {
            uint32_t a[ROWS][4], b[COLUMNS / 2][4];
#pragma unroll
            for (int i = 0; i < ROWS; i++) read_left<LEFT>(a[i], left, row, i, k, lane);
#pragma unroll
            for (int j = 0; j < COLUMNS / 2; j++) {
                read_right<RIGHT>(b[j], right, column, j, k, lane);
            }
#pragma unroll
            for (int i = 0; i < ROWS; i++) {
#pragma unroll
                for (int j = 0; j < COLUMNS; j++) {
                    mma(sum[i][j], a[i], b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]);
                }
            }
        }
    }

    template <int LEFT_OVER> HKC_DEVICE void finish() {
    }

    // A thread has two neighbours of row lane / 4 and two of the eighth one below.
    template <class OUT> HKC_DEVICE void store(const result<OUT> &out) {
        find();
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
#pragma unroll
            for (int half = 0; half < 2; half++) {
                write<2, COLUMNS, 4>(out, row + i * 16 + half * 8 + lane / 4, column + lane % 4 * 2,
                                     8, sum[i][0] + half * 2);
            }
        }
    }

    // Half of a warp's columns are of one matrix, then the same of the other.
    template <class OUT> HKC_DEVICE void store(const pairs<OUT> &out) {
        find();
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
#pragma unroll
            for (int half = 0; half < 2; half++) {
                const int at = row + i * 16 + half * 8 + lane / 4;
#pragma unroll
                for (int j = 0; j < APART; j++) {
                    write_pair<2>(out, at, column / 2 + j * 8 + lane % 4 * 2, sum[i][j] + half * 2,
                                  sum[i][j + APART] + half * 2);
                }
            }
        }
    }
};

} // namespace product

#endif
