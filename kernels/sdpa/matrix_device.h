// matrix: rows of bf16 in shared memory as operands of tensor cores (mma.sync.m16n8k16, sums in float), for
// attention. A warp has R times 16 of its block's own rows; all warps share tiles of OTHER rows.
//
// A matrix lies in panels of 64 columns; a panel has a line of 128 bytes for each row, whose pieces of 16 bytes are
// exchanged so that eight lines' pieces at one place, which ldmatrix reads at once, hit all banks. Columns up to the
// next multiple of 16 are zeros, and so are rows that are not there.
#ifndef HECATE_KERNELS_SDPA_MATRIX_DEVICE_H
#define HECATE_KERNELS_SDPA_MATRIX_DEVICE_H

#include "kernels/cuda/piece.h"
#include "kernels/sdpa/heads_device.h"

namespace attention {

typedef __nv_bfloat16 bf16;

constexpr int WARPS = 4, MATRIX_THREADS = 32 * WARPS, TILE = 32, PANEL = 64, LINE_BYTES = 128;

// Panels of so many columns, and steps of 16 of them.
HKC_HOST_DEVICE int panels_of(int64_t columns) {
    return (int)((columns + PANEL - 1) / PANEL);
}
HKC_HOST_DEVICE int steps_of(int64_t columns) {
    return (int)((columns + 15) / 16);
}

HKC_HOST_DEVICE int matrix_bytes(int rows, int64_t columns) {
    return panels_of(columns) * rows * LINE_BYTES;
}

// Where piece `piece` of a line lies in a matrix of ROWS lines.
template <int ROWS> HKC_DEVICE int place(int line, int piece) {
    return (piece / 8 * ROWS + line) * LINE_BYTES + ((piece % 8 ^ (line & 7)) << 4);
}

// Begins to copy ROWS rows from row `first` and `columns` columns from `begin` on, by all threads of the block.
template <int ROWS>
HKC_DEVICE void copy_matrix(unsigned char *to, const head_rows<bf16> &from, int64_t first,
                            int64_t begin, int64_t columns) {
    const bool wide = hkc::is_wide(from.at, from.stride) && from.width % 8 == 0;
    const int pieces = 2 * steps_of(columns);
    for (int piece = (int)threadIdx.x % 8; piece < pieces; piece += 8) {
#pragma unroll
        for (int line = (int)threadIdx.x / 8; line < ROWS; line += MATRIX_THREADS / 8) {
            const int64_t row = first + line, column = begin + piece * 8;
            const bool there = row < from.rows;
            const int64_t exist = there && column < from.width ? from.width - column : 0;
            const bf16 *at = from.at + (exist > 0 ? row * from.stride + column : 0);
            unsigned char *place_of_piece = to + place<ROWS>(line, piece);
            if (wide) {
                copy16(shared_address(place_of_piece), at, exist > 0 ? 16 : 0);
            } else {
                hkc::copy_values(place_of_piece, at, exist < 8 ? (int)exist : 8);
            }
        }
    }
}

// product[i][j] = the thread's part of 16 of the own rows, i from `row` on, times 8 of the tile's; over `steps` times
// 16 columns. See mma for the parts.
template <int OWN, int R>
HKC_DEVICE void multiply_rows(float (&product)[R][TILE / 8][4], const unsigned char *own, int row,
                              const unsigned char *tile, int steps) {
    const int lane = (int)threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < R; i++) {
#pragma unroll
        for (int j = 0; j < TILE / 8; j++) {
#pragma unroll
            for (int e = 0; e < 4; e++) product[i][j][e] = 0;
        }
    }
#pragma unroll 4
    for (int k = 0; k < steps; k++) {
        uint32_t a[R][4];
#pragma unroll
        for (int i = 0; i < R; i++) {
            load4(a[i],
                  shared_address(own + place<OWN>(row + i * 16 + lane % 16, k * 2 + lane / 16)));
        }
#pragma unroll
        for (int j = 0; j < TILE / 16; j++) {
            uint32_t b[4];
            const int line = j * 16 + lane % 8 + lane / 16 * 8;
            load4(b, shared_address(tile + place<TILE>(line, k * 2 + lane / 8 % 2)));
#pragma unroll
            for (int i = 0; i < R; i++) {
                mma(product[i][j * 2], a[i], b[0], b[1]);
                mma(product[i][j * 2 + 1], a[i], b[2], b[3]);
            }
        }
    }
}

// Weights as an operand: the GEMMs above, rounded.
template <int R> struct weights {
    uint32_t at[R][TILE / 16][4];

    HKC_DEVICE explicit weights(const float (&product)[R][TILE / 8][4]) {
#pragma unroll
        for (int i = 0; i < R; i++) {
#pragma unroll
            for (int j = 0; j < TILE / 8; j++) {
#pragma unroll
                for (int half = 0; half < 2; half++) {
                    const __nv_bfloat162 pair =
                        __floats2bfloat162_rn(product[i][j][half * 2], product[i][j][half * 2 + 1]);
                    memcpy(&at[i][j / 2][j % 2 * 2 + half], (const void *)&pair, sizeof pair);
                }
            }
        }
    }
};

// sum += weights times columns 0 .. 16 * steps - 1 of the tile, of up to C panels.
template <int R, int C>
HKC_DEVICE void add_weighted(float (&sum)[R][C * 8][4], const weights<R> &weight,
                             const unsigned char *tile, int steps) {
    const int lane = (int)threadIdx.x % 32;
#pragma unroll
    for (int j = 0; j < C * 4; j++) {
        if (j < steps) {
#pragma unroll
            for (int k = 0; k < TILE / 16; k++) {
                uint32_t b[4];
                load4_transposed(
                    b, shared_address(tile + place<TILE>(k * 16 + lane % 16, j * 2 + lane / 16)));
#pragma unroll
                for (int i = 0; i < R; i++) {
                    mma(sum[i][j * 2], weight.at[i][k], b[0], b[1]);
                    mma(sum[i][j * 2 + 1], weight.at[i][k], b[2], b[3]);
                }
            }
        }
    }
}

// The four threads that have the same row; all of them get it.
HKC_DEVICE float quad_max(float value) {
    for (int step = 1; step < 4; step *= 2) value = fmaxf(value, __shfl_xor_sync(~0u, value, step));
    return value;
}
HKC_DEVICE float quad_sum(float value) {
    for (int step = 1; step < 4; step *= 2) value += __shfl_xor_sync(~0u, value, step);
    return value;
}

// Stores the thread's part of a row: from column `begin` of `to` on, which has `width`.
template <int N>
HKC_DEVICE void store_row(bf16 *to, int64_t begin, int64_t width, const float (&sum)[N][4],
                          int half, float scale) {
    const bool pairs =
        ((uint64_t)to | (uint64_t)width * sizeof(bf16)) % sizeof(__nv_bfloat162) == 0;
    const int64_t first = begin + (int)threadIdx.x % 4 * 2;
#pragma unroll
    for (int j = 0; j < N; j++) {
        const int64_t column = first + j * 8;
        const float a = sum[j][half * 2] * scale, b = sum[j][half * 2 + 1] * scale;
        if (pairs && column < width) {
            *(__nv_bfloat162 *)(to + column) = __floats2bfloat162_rn(a, b);
        } else {
            if (column < width) to[column] = (bf16)a;
            if (column + 1 < width) to[column + 1] = (bf16)b;
        }
    }
}

// Calls load(i, tile) and compute(i, tile) for i = 0 .. count - 1. Each compute sees the loads of all threads. `two`:
// the tiles, `bytes` bytes of shared memory each, alternate between two buffers, and the next one loads meanwhile.
template <class L, class F>
HKC_DEVICE void each_tile(unsigned char *memory, int bytes, bool two, int count, L load,
                          F compute) {
    if (count > 0) load(0, memory);
    copy_commit();
#pragma unroll 1
    for (int i = 0; i < count; i++) {
        copy_wait<0>();
        __syncthreads();
        unsigned char *tile = memory + (two ? i % 2 * bytes : 0);
        unsigned char *next = memory + (two ? (i + 1) % 2 * bytes : 0);
        const bool more = i + 1 < count;
        if (two && more) load(i + 1, next);
        if (two) copy_commit();
        compute(i, tile);
        if (!two) __syncthreads();
        if (!two && more) load(i + 1, next);
        if (!two) copy_commit();
    }
}

} // namespace attention

#endif
