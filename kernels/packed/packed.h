// packed: weights of GEMMs that nobody trains, in 4 or 8 bits an element, with scales.
//
// A k x n matrix is panels of HK_PANEL columns, [ceil(n / 64)][ceil(k / 32)] blocks of 32 rows. A block begins with its
// scales, in HK_PACKED_HEAD bytes, and has zeros where the matrix ends. Its rows lie in pairs, as those of bf16 panels:
//   HK_MXFP4  one scale for each column, 2^(byte - 127), 255: NaN. [16][64] bytes: the earlier row in the low 4 bits;
//             a sign, 2 bits of exponent, 1 of fraction (OCP Microscaling Formats, version 1.0).
//   HK_FP8    one scale, a float. [16][64][2] bytes of e4m3: a sign, 4 bits of exponent, 3 of fraction, 0x7f: NaN (OCP
//             8-bit Floating Point, version 1.0).
// An element is its float times its scale, rounded to float and then to bf16 (hk_bf16_round): GEMMs read that bf16. Of
// MXFP4 both roundings are exact, but where a value leaves the range of bf16.
#ifndef HECATE_KERNELS_PACKED_H
#define HECATE_KERNELS_PACKED_H

#include <stdint.h>

#include "kernels/bf16.h"
#include "kernels/types.h"

enum { HK_PACKED_ROWS = 32, HK_PACKED_HEAD = 64 };

// Bytes of a block.
static inline int64_t hk_packed_block_bytes(enum hk_packing packing) {
    return HK_PACKED_HEAD + HK_PACKED_ROWS * HK_PANEL / (packing == HK_MXFP4 ? 2 : 1);
}

// Bytes between blocks of the same rows in neighbouring panels.
static inline int64_t hk_packed_panel_bytes(enum hk_packing packing, int64_t k) {
    return (k + HK_PACKED_ROWS - 1) / HK_PACKED_ROWS * hk_packed_block_bytes(packing);
}

// Places of bf16 that a k x n matrix takes.
static inline int64_t hk_packed_size(enum hk_packing packing, int64_t k, int64_t n) {
    return (n + HK_PANEL - 1) / HK_PANEL * hk_packed_panel_bytes(packing, k) / 2;
}

// The block of a k x n matrix that has its element [row, column].
static inline void *hk_packed_block(enum hk_packing packing, void *matrix, int64_t k, int64_t row,
                                    int64_t column) {
    return (char *)matrix + column / HK_PANEL * hk_packed_panel_bytes(packing, k) +
           row / HK_PACKED_ROWS * hk_packed_block_bytes(packing);
}

// Stores a block: `rows` x `columns` values, `pitch` from one row to the next, and zeros beyond them. `scale` is the
// one that values of HK_FP8 were made with, as floats; 0, and with HK_MXFP4: scales are chosen. A value that a packed
// element had keeps its bits:
//   HK_MXFP4  by 2^(exponent of the largest - 2), as the specification has it
//   HK_FP8    by a scale that makes all values, once rounded to bf16, from elements; else the least power of two
// Elements go to the nearest, ties to even. A value that is not finite becomes NaN; with HK_MXFP4 all become so that
// share its scale.
void hk_pack(enum hk_packing packing, void *block, const float *values, int64_t pitch, int64_t rows,
             int64_t columns, float scale);

// Element [row, column] of a block, as GEMMs read it.
hk_bf16 hk_packed_element(enum hk_packing packing, const void *block, int64_t row, int64_t column);

#endif
