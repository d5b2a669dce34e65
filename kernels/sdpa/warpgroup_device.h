// warpgroup: rows of bf16 in shared memory as operands of a warpgroup's GEMMs (wgmma, sm_90a), for attention. A block
// has two warpgroups, each with 64 of the block's 128 own rows; both share tiles of the other rows, of which there are
// two: one is computed with while the next one is under way.
//
// A matrix lies as in matrix_device.h, in panels of 64 columns, which are what wgmma calls lines of 128 bytes with
// swizzle. So one copy of a tile is both kinds of operand: rows along the contracted index, and rows that are the
// contracted index.
#ifndef HECATE_KERNELS_SDPA_WARPGROUP_DEVICE_H
#define HECATE_KERNELS_SDPA_WARPGROUP_DEVICE_H

#include "kernels/cuda/warpgroup_registers.h"
#include "kernels/sdpa/matrix_device.h"

namespace attention {

constexpr int GROUP_THREADS = 256, GROUP_ROWS = 64, OWN = 2 * GROUP_ROWS;

// How a thread copies ROWS rows of a head, tile after tile; of each the columns of P panels, which are zeros where the
// head has none.
template <int ROWS, int P> struct copier {
    static constexpr int PIECES = 8 * P, BELOW = GROUP_THREADS / PIECES;
    const bf16 *at; // The thread's piece of its first row.
    int64_t stride, rows;
    int exist; // Values of the piece.
    bool wide;

    HKC_DEVICE explicit copier(const head_rows<bf16> &from) : stride(from.stride), rows(from.rows) {
        const int column = (int)threadIdx.x % PIECES * 8;
        const int64_t left = from.width - column;
        exist = left < 0 ? 0 : left > 8 ? 8 : (int)left;
        wide = hkc::is_wide(from.at, from.stride) && from.width % 8 == 0;
        at = from.at + (exist ? (int)threadIdx.x / PIECES * stride + column : 0);
    }

    // Begins to copy the rows from `first` on; rows that are not there are zeros.
    HKC_DEVICE void copy(unsigned char *to, int64_t first) const {
        const int line = (int)threadIdx.x / PIECES;
        const bf16 *from = at + (exist ? first * stride : 0);
        to += place<ROWS>(line, (int)threadIdx.x % PIECES);
#pragma unroll
        for (int i = 0; i < ROWS; i += BELOW) {
            const bool there = first + line + i < rows;
            const int count = there ? exist : 0;
            // Lines BELOW apart are exchanged alike.
            if (wide) {
                copy16(shared_address(to + i * LINE_BYTES), count ? from : at, count ? 16 : 0);
            } else {
                hkc::copy_values(to + i * LINE_BYTES, count ? from : at, count);
            }
            from += exist ? BELOW * stride : 0;
        }
    }
};

#if HKC_WARPGROUPS

// The warpgroup, by a shuffle: so the compiler knows that the whole warp agrees.
HKC_DEVICE int warpgroup() {
    return __shfl_sync(~0u, (int)threadIdx.x / 128, 0);
}

// sum = the warpgroup's 64 of the OWN rows at `own`, times the ROWS rows of a tile: the GEMMs of rows of P panels.
// Begins them; they are a group.
template <int P, int ROWS>
HKC_DEVICE void begin_scores(float (&sum)[ROWS / 2], const unsigned char *own,
                             const unsigned char *tile) {
    const uint32_t a = shared_address(own) + (uint32_t)warpgroup() * GROUP_ROWS * LINE_BYTES;
    const uint32_t b = shared_address(tile);
#pragma unroll
    for (int i = 0; i < ROWS / 2; i++) sum[i] = 0;
    wgmma_sums(sum);
    wgmma_fence();
#pragma unroll
    for (uint32_t k = 0; k < 4 * P; k++) {
        wgmma<0, 0>(sum, wgmma_operand(a + k / 4 * OWN * LINE_BYTES + k % 4 * 32, LINE_BYTES),
                    wgmma_operand(b + k / 4 * ROWS * LINE_BYTES + k % 4 * 32, LINE_BYTES));
    }
    wgmma_commit();
}

// A GEMM's sums, rounded, as a left operand: 16 columns in four registers.
template <int ROWS> struct group_weights {
    uint32_t at[ROWS / 16][4];

    HKC_DEVICE explicit group_weights(const float (&sum)[ROWS / 2]) {
#pragma unroll
        for (int i = 0; i < ROWS / 4; i++) {
            const __nv_bfloat162 pair = __floats2bfloat162_rn(sum[2 * i], sum[2 * i + 1]);
            memcpy(&at[i / 4][i % 4], (const void *)&pair, sizeof pair);
        }
    }
};

// sum += weights times the ROWS rows of a tile, P panels wide. Begins it; it is a group. The weights stay until it has
// ended.
template <int P, int ROWS>
HKC_DEVICE void begin_weighted(float (&sum)[32 * P], const group_weights<ROWS> &weights,
                               const unsigned char *tile) {
    const uint32_t b = shared_address(tile);
    wgmma_fence();
#pragma unroll
    for (uint32_t k = 0; k < ROWS / 16; k++) {
        wgmma<1>(sum, weights.at[k], wgmma_operand(b + k * 16 * LINE_BYTES, ROWS * LINE_BYTES));
    }
    wgmma_commit();
}

#endif

// 2^x; -infinity gives 0.
HKC_DEVICE float power_of_2(float x) {
    float power;
    HKC_PTX((power = exp2f(x)), "ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
    return power;
}

// Stores the thread's part of row `half` of its two.
template <int N>
HKC_DEVICE void store_group_row(bf16 *to, int64_t width, const float (&sum)[N], int half,
                                float scale) {
    const bool pairs = ((uint64_t)to | (uint64_t)width * sizeof(bf16)) % 4 == 0;
#pragma unroll
    for (int j = 0; j < N / 4; j++) {
        const int64_t column = j * 8 + (int)threadIdx.x % 4 * 2;
        const float a = sum[j * 4 + half * 2] * scale, b = sum[j * 4 + half * 2 + 1] * scale;
        if (pairs && column < width) {
            *(__nv_bfloat162 *)(to + column) = __floats2bfloat162_rn(a, b);
        } else {
            if (column < width) to[column] = (bf16)a;
            if (column + 1 < width) to[column + 1] = (bf16)b;
        }
    }
}

// Calls load(i, tile) and compute(i, tile) for i = 0 .. count - 1, as each_tile does with two tiles. Copies are visible
// to GEMMs.
template <class L, class F>
HKC_DEVICE void each_group_tile(unsigned char *memory, int bytes, int count, L load, F compute) {
    if (count > 0) load(0, memory);
    copy_commit();
#pragma unroll 1
    for (int i = 0; i < count; i++) {
        unsigned char *tile = memory + i % 2 * bytes, *next = memory + (i + 1) % 2 * bytes;
        copy_wait<0>();
#if HKC_WARPGROUPS
        async_fence();
#endif
        __syncthreads();
        if (i + 1 < count) load(i + 1, next);
        copy_commit();
        compute(i, tile);
    }
}

} // namespace attention

#endif
