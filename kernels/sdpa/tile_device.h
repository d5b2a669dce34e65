// tile: shared by the kernels of attention of floats. A block of threads owns OWN rows (queries or keys) and walks
// over tiles of OTHER rows (keys or queries): it makes a matrix [OWN][OTHER] of products of rows, and multiplies one of
// these with rows of the tile, which it sums up in registers.
#ifndef HECATE_KERNELS_SDPA_TILE_DEVICE_H
#define HECATE_KERNELS_SDPA_TILE_DEVICE_H

#include "kernels/sdpa/heads_device.h"

namespace attention {

// Thread (tx, ty) of SIDE x SIDE has rows ty, ty + SIDE, .. of the own ones and columns tx, tx + SIDE, .. of the
// others.
constexpr int SIDE = 16, THREADS = SIDE * SIDE, OWN = 64, OTHER = 32, DEPTH = 32;
constexpr int ROWS = OWN / SIDE, COLUMNS = OTHER / SIDE, LINE = DEPTH + 1; // One more: other banks.

struct shared_tile {
    float own[OWN][LINE], other[OTHER][LINE], weight[OWN][LINE];
};

HKC_DEVICE int tx() {
    return (int)threadIdx.x % SIDE;
}
HKC_DEVICE int ty() {
    return (int)threadIdx.x / SIDE;
}

// Columns begin .. begin + DEPTH - 1 of rows first .. first + count - 1; missing ones are 0.
HKC_DEVICE void load(float (*to)[LINE], const head_rows<float> &from, int64_t first, int count,
                     int64_t begin) {
    for (int i = (int)threadIdx.x; i < count * DEPTH; i += THREADS) {
        const int64_t row = first + i / DEPTH, column = begin + i % DEPTH;
        const bool there = row < from.rows && column < from.width;
        to[i / DEPTH][i % DEPTH] = there ? from.at[row * from.stride + column] : 0;
    }
}

// product[i][j] = sum over the width of own row own_first + ty + SIDE i times other row other_first + tx + SIDE j.
HKC_DEVICE void multiply_rows(float (&product)[ROWS][COLUMNS], shared_tile &tile,
                              const head_rows<float> &own, int64_t own_first,
                              const head_rows<float> &other, int64_t other_first) {
    for (int i = 0; i < ROWS; i++) {
        for (int j = 0; j < COLUMNS; j++) product[i][j] = 0;
    }
    for (int64_t begin = 0; begin < own.width; begin += DEPTH) {
        __syncthreads();
        load(tile.own, own, own_first, OWN, begin);
        load(tile.other, other, other_first, OTHER, begin);
        __syncthreads();
#pragma unroll 4
        for (int c = 0; c < DEPTH; c++) {
            float a[ROWS], b[COLUMNS];
            for (int i = 0; i < ROWS; i++) a[i] = tile.own[ty() + SIDE * i][c];
            for (int j = 0; j < COLUMNS; j++) b[j] = tile.other[tx() + SIDE * j][c];
            for (int i = 0; i < ROWS; i++) {
                for (int j = 0; j < COLUMNS; j++) product[i][j] += a[i] * b[j];
            }
        }
    }
}

// sum[i][c] += sum over the tile's rows of weight[own row][row] times its column tx + SIDE c. `wide` has room for
// OTHER rows of SIDE * C numbers.
template <int C>
HKC_DEVICE void add_weighted(float (&sum)[ROWS][C], shared_tile &tile, float *wide,
                             const float (&weight)[ROWS][COLUMNS], const head_rows<float> &other,
                             int64_t other_first) {
    __syncthreads();
    for (int i = 0; i < ROWS; i++) {
        for (int j = 0; j < COLUMNS; j++)
            tile.weight[ty() + SIDE * i][tx() + SIDE * j] = weight[i][j];
    }
    for (int i = (int)threadIdx.x; i < OTHER * SIDE * C; i += THREADS) {
        const int64_t row = other_first + i / (SIDE * C), column = i % (SIDE * C);
        const bool there = row < other.rows && column < other.width;
        wide[i] = there ? other.at[row * other.stride + column] : 0;
    }
    __syncthreads();
    for (int r = 0; r < OTHER; r++) {
        float a[ROWS];
        for (int i = 0; i < ROWS; i++) a[i] = tile.weight[ty() + SIDE * i][r];
#pragma unroll
        for (int c = 0; c < C; c++) {
            const float b = wide[r * SIDE * C + tx() + SIDE * c];
            for (int i = 0; i < ROWS; i++) sum[i][c] += a[i] * b;
        }
    }
}

// Over the SIDE threads that have the same rows; all of them get it.
HKC_DEVICE float side_max(float value) {
    for (int step = SIDE / 2; step > 0; step /= 2) {
        const float other = __shfl_xor_sync(~0u, value, step);
        value = other > value ? other : value;
    }
    return value;
}
HKC_DEVICE float side_sum(float value) {
    for (int step = SIDE / 2; step > 0; step /= 2) value += __shfl_xor_sync(~0u, value, step);
    return value;
}

} // namespace attention

#endif
