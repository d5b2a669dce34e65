// product_ffma: sums of float products, one fused multiply and add after the other.
//
// 16 x 16 threads have H / 16 rows and 8 columns of the tile each. A warp is 4 threads high and 8
// wide, so that a load of 16 bytes by each of its threads asks for no bank twice.
#ifndef HECATE_KERNELS_CUDA_PRODUCT_FFMA_H
#define HECATE_KERNELS_CUDA_PRODUCT_FFMA_H

#include "kernels/cuda/product.h"

namespace product {

struct ffma {
    typedef float value;
    static constexpr bool EXISTS = true;
    static constexpr int WIDTH = 128, LINE = 64, THREADS = 256, HELD = 1, STAGES = 4, UNDER_WAY = 0,
                         TERMS = 1024;
    template <major M> static HKC_DEVICE int place(int line, int piece) {
        // Eight lines' pieces at one place hit all banks.
        if (M == K_MAJOR) return line * LINE + ((piece ^ (line >> 1 & 3)) << 4);
        return line * WIDTH * (int)sizeof(value) + (piece << 4);
    }
    template <major LEFT, major RIGHT, int H> struct sums;
};

// The i-th row or column of thread t; 16 threads have `count` (16, 64, 128) of them. In a K_MAJOR operand it is every
// 16th, since a thread reads four terms at once; in an MN_MAJOR one four neighbours, and four 64 further.
template <major M> HKC_DEVICE int owned(int t, int i) {
    return M == K_MAJOR ? t + i * 16 : t * 4 + i / 4 * 64 + i % 4;
}

// Value i of a row's four terms.
template <int N>
HKC_REGISTERS void put_terms(float (&to)[4][N], int i, const hkc_vector<float, 4> &terms) {
#pragma unroll
    for (int p = 0; p < 4; p++) to[p][i] = terms.at[p];
}

// Terms 4 q to 4 q + 3 of a thread's N rows or columns.
template <major M, int N>
HKC_DEVICE void read_terms(float (&to)[4][N], const unsigned char *at, int t, int q) {
    typedef hkc_vector<float, 4> piece;
    if (M == K_MAJOR) {
#pragma unroll
        for (int i = 0; i < N; i++) {
            // Pieces of every 16th line are exchanged alike.
            put_terms(to, i, *(const piece *)(at + ffma::place<M>(t, q) + i * 16 * ffma::LINE));
        }
    } else {
#pragma unroll
        for (int p = 0; p < 4; p++) {
#pragma unroll
            for (int i = 0; i < N; i += 4) {
                const int number = owned<M>(t, i) / 4;
                *(piece *)&to[p][i] = *(const piece *)(at + ffma::place<M>(q * 4 + p, number));
            }
        }
    }
}

template <major LEFT, major RIGHT, int H> struct ffma::sums {
    static constexpr int ROWS = H / 16, COLUMNS = WIDTH / 16, APART = 16;
    float sum[ROWS][COLUMNS];
    int x, y;

    HKC_DEVICE void find() {
        const int number = thread();
        x = number / 32 % 2 * 8 + number % 8;
        y = number / 64 * 4 + number % 32 / 8;
    }

    HKC_DEVICE void zero() {
        find();
        for (int i = 0; i < ROWS; i++) {
            for (int j = 0; j < COLUMNS; j++) sum[i][j] = 0;
        }
    }

    // Four terms of N rows.
    template <int N>
    static HKC_REGISTERS void multiply(float (*to)[COLUMNS], const float (&a)[4][N],
                                       const float (&b)[4][COLUMNS]) {
#pragma unroll
        for (int p = 0; p < 4; p++) {
#pragma unroll
            for (int i = 0; i < N; i++) {
#pragma unroll
                for (int j = 0; j < COLUMNS; j++) to[i][j] += a[p][i] * b[p][j];
            }
        }
    }

    HKC_DEVICE void add(const unsigned char *left, const unsigned char *right) {
#pragma unroll 2
        for (int q = 0; q < DEPTH<ffma> / 4; q++) {
            alignas(16) float b[4][COLUMNS];
            read_terms<RIGHT>(b, right, x, q);
            // A K_MAJOR row's four terms are used at once; they need no more registers than that.
            constexpr int READ = LEFT == K_MAJOR ? 1 : ROWS;
#pragma unroll
            for (int i = 0; i < ROWS; i += READ) {
                alignas(16) float a[4][READ];
                read_terms<LEFT>(a, left + (LEFT == K_MAJOR ? i * 16 * 64 : 0), y, q);
                multiply(&sum[i], a, b);
            }
        }
    }

    template <int LEFT_OVER> HKC_DEVICE void finish() {
    }

    template <class OUT> HKC_DEVICE void store(const result<OUT> &out) {
        find();
        constexpr int N = RIGHT == K_MAJOR ? 1 : 4;
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            write<N, COLUMNS / N, N>(out, owned<LEFT>(y, i), owned<RIGHT>(x, 0), N * 16, sum[i]);
        }
    }

    template <class OUT> HKC_DEVICE void store(const pairs<OUT> &out) {
        find();
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            write_pair<4>(out, owned<LEFT>(y, i), x * 4, sum[i], sum[i] + 4);
        }
    }
};

} // namespace product

#endif
