// unpack: blocks of packed weights (packed/packed.h) as pairs of rows of bf16, as panels have them.
#ifndef HECATE_KERNELS_MATMUL_UNPACK_H
#define HECATE_KERNELS_MATMUL_UNPACK_H

#ifdef HK_OPERAND_BF16

#include "kernels/cpu/operand.h"
#include "kernels/matmul/product.h"
#include "kernels/packed/packed.h"

typedef uint32_t lane_bits __attribute__((vector_size(HK_VECTOR_BYTES)));
typedef uint8_t lane_bytes __attribute__((vector_size(HK_VECTOR_BYTES / 4)));

HK_INLINE lane_bits load_bytes(const uint8_t *from) {
    lane_bytes bytes;
    memcpy(&bytes, from, sizeof bytes);
    return __builtin_convertvector(bytes, lane_bits);
}

// The number with these bits of exponent and fraction, where an exponent of 0 has none of the implied 1: with
// `implied`, the bits of that 1, it is a number whose 1 is taken away.
HK_INLINE vec small_float(lane_bits normal, lane_bits is_denormal, lane_bits denormal, float one) {
    const lane_bits less = (lane_bits)((vec)denormal - one);
    return (vec)((normal & ~is_denormal) | (less & is_denormal));
}

// The numbers of codes of 4 bits.
HK_INLINE vec mxfp4_floats(lane_bits code) {
    const lane_bits places = (code & 7) << 22;
    const lane_bits is_denormal = (lane_bits)((code & 7) < 2);
    const vec magnitude =
        small_float(places + (126U << 23), is_denormal, places + (127U << 23), 1.0F);
    return (vec)((lane_bits)magnitude | (code & 8) << 28);
}

HK_INLINE vec mxfp4_scales(const uint8_t *bytes) {
    const lane_bits byte = load_bytes(bytes);
    const lane_bits nan = (lane_bits)(byte == 255) & 0x400000,
                    least = (lane_bits)(byte == 0) & 0x400000;
    return (vec)(byte << 23 | nan | least);
}

// `pairs` pairs of rows, of which the first is number `pair`, 64 columns each.
static void unpack_mxfp4(pair *to, const uint8_t *block, int64_t first, int64_t count) {
    const uint8_t *codes = block + HK_PACKED_HEAD + first * HK_PANEL;
    for (int64_t j = 0; j < HK_PANEL; j += lanes) {
        const vec scale = mxfp4_scales(block + j);
        for (int64_t i = 0; i < count; i++) {
            const lane_bits both = load_bytes(codes + i * HK_PANEL + j);
            round_pairs(to + i * HK_PANEL + j, mxfp4_floats(both & 15) * scale,
                        mxfp4_floats(both >> 4) * scale);
        }
    }
}

// The numbers of codes of 8 bits.
HK_INLINE vec fp8_floats(lane_bits code) {
    const lane_bits places = (code & 127) << 20;
    const lane_bits is_denormal = (lane_bits)((code & 127) < 8);
    const lane_bits nan = (lane_bits)((code & 127) == 127) & 0x7fc00000;
    const vec magnitude =
        small_float(places + (120U << 23), is_denormal, places + (121U << 23), 0x1p-6F);
    return (vec)((lane_bits)magnitude | nan | (code & 128) << 24);
}

static void unpack_fp8(pair *to, const uint8_t *block, int64_t first, int64_t count) {
    typedef uint16_t lane_words __attribute__((vector_size(HK_VECTOR_BYTES / 2)));
    const uint8_t *codes = block + HK_PACKED_HEAD + first * 2 * HK_PANEL;
    float scale;
    memcpy(&scale, block, sizeof scale);
    for (int64_t i = 0; i < count; i++) {
        for (int64_t j = 0; j < HK_PANEL; j += lanes) {
            lane_words words;
            memcpy(&words, codes + 2 * (i * HK_PANEL + j), sizeof words);
            const lane_bits both = __builtin_convertvector(words, lane_bits);
            round_pairs(to + i * HK_PANEL + j, fp8_floats(both & 255) * scale,
                        fp8_floats(both >> 8) * scale);
        }
    }
}

// Rows [row, row + rows) of panel j of B, from an even one on, as pairs: an odd last one with zeros, or with the
// row behind it.
static void unpack_rows(pair *to, const weight *b, const struct product *p, int64_t j, int64_t row,
                        int64_t rows) {
    const uint8_t *panel = (const uint8_t *)b + j * hk_packed_panel_bytes(p->packing, p->k);
    for (int64_t done = 0, some; done < rows; done += some) {
        const int64_t at = (row + done) % HK_PACKED_ROWS, left = HK_PACKED_ROWS - at;
        const uint8_t *block =
            panel + (row + done) / HK_PACKED_ROWS * hk_packed_block_bytes(p->packing);
        some = left < rows - done ? left : rows - done;
        pair *const pairs = to + done / 2 * HK_PANEL;
        if (p->packing == HK_MXFP4)
            unpack_mxfp4(pairs, block, at / 2, (some + 1) / 2);
        else
            unpack_fp8(pairs, block, at / 2, (some + 1) / 2);
    }
}

#endif

#endif
