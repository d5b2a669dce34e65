// tile: what the kernels of attention share. A block of threads owns OWN rows (queries or keys) and walks over tiles of
// OTHER rows (keys or queries): it makes a matrix [OWN][OTHER] of products of rows, and multiplies one of these with
// rows of the tile, which it sums up in registers.
#ifndef HECATE_KERNELS_SDPA_TILE_DEVICE_H
#define HECATE_KERNELS_SDPA_TILE_DEVICE_H

#include "kernels/cuda/device.h"

namespace attention {

// Thread (tx, ty) of SIDE x SIDE has rows ty, ty + SIDE, .. of the own ones and columns tx, tx + SIDE, .. of the others.
constexpr int SIDE = 16, THREADS = SIDE * SIDE, OWN = 64, OTHER = 32, DEPTH = 32;
constexpr int ROWS = OWN / SIDE, COLUMNS = OTHER / SIDE, LINE = DEPTH + 1; // One more: other banks.

// Rows of a tensor [.., positions, heads, width] that are one head's: row i at `at` + i * stride, `rows` of them.
template <class T> struct head_rows {
    const T *at;
    int64_t stride, rows, width;
};

struct shared_tile {
    float own[OWN][LINE], other[OTHER][LINE], weight[OWN][LINE];
};

HKC_DEVICE int tx() {
    return (int)threadIdx.x % SIDE;
}
HKC_DEVICE int ty() {
    return (int)threadIdx.x / SIDE;
}

// Columns begin .. begin + DEPTH - 1 of rows first .. first + count - 1; what is not there is 0.
template <class T>
HKC_DEVICE void load(float (*to)[LINE], const head_rows<T> &from, int64_t first, int count,
                     int64_t begin) {
    for (int i = (int)threadIdx.x; i < count * DEPTH; i += THREADS) {
        const int64_t row = first + i / DEPTH, column = begin + i % DEPTH;
#if HKC_FAULT == 3 // asan: rows behind the last one are read.
        const bool there = column < from.width;
#else
        const bool there = row < from.rows && column < from.width;
#endif
        to[i / DEPTH][i % DEPTH] = there ? hkc_float(from.at[row * from.stride + column]) : 0;
    }
}

// product[i][j] = sum over the width of own row own_first + ty + SIDE i times other row other_first + tx + SIDE j.
template <class T>
HKC_DEVICE void multiply_rows(float (&product)[ROWS][COLUMNS], shared_tile &tile,
                              const head_rows<T> &own, int64_t own_first, const head_rows<T> &other,
                              int64_t other_first) {
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
template <class T, int C>
HKC_DEVICE void add_weighted(float (&sum)[ROWS][C], shared_tile &tile, float *wide,
                             const float (&weight)[ROWS][COLUMNS], const head_rows<T> &other,
                             int64_t other_first) {
    __syncthreads();
    for (int i = 0; i < ROWS; i++) {
        for (int j = 0; j < COLUMNS; j++)
            tile.weight[ty() + SIDE * i][tx() + SIDE * j] = weight[i][j];
    }
    for (int i = (int)threadIdx.x; i < OTHER * SIDE * C; i += THREADS) {
        const int64_t row = other_first + i / (SIDE * C), column = i % (SIDE * C);
        const bool there = row < other.rows && column < other.width;
        wide[i] = there ? hkc_float(other.at[row * other.stride + column]) : 0;
    }
#if HKC_FAULT != 1 // race: weights are read before they are written.
    __syncthreads();
#endif
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

// Which keys a query sees.
struct mask {
    int64_t positions, window;
    bool causal;
    HKC_DEVICE bool sees(int64_t query, int64_t key) const {
#if HKC_FAULT == 2 // plain: a query sees one key too many.
        const bool later = key > query + 1;
#else
        const bool later = key > query;
#endif
        return query < positions && key < positions && !(causal && later) &&
               !(window > 0 && query - key >= window);
    }
    // Keys that some query of first .. last sees, and queries that see some key of them: from .. to - 1.
    HKC_DEVICE int64_t keys_from(int64_t first) const {
        return window > 0 && first >= window ? first - window + 1 : 0;
    }
    HKC_DEVICE int64_t keys_to(int64_t last) const {
        return causal && last + 1 < positions ? last + 1 : positions;
    }
    HKC_DEVICE int64_t queries_from(int64_t first) const {
        return causal ? first : 0;
    }
    HKC_DEVICE int64_t queries_to(int64_t last) const {
        return window > 0 && last + window < positions ? last + window : positions;
    }
};

} // namespace attention

#endif
