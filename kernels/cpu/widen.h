// widen: a float that holds a bf16 value as operand, for processors that do not multiply bf16: rows are rounded
// as they are copied, and weights, which lie as pairs of rows, become floats as they are turned or read.
// Only operand.h includes it.
#ifndef HECATE_KERNELS_CPU_WIDEN_H
#define HECATE_KERNELS_CPU_WIDEN_H

#include "kernels/cpu/operand_types.h"
#include "kernels/cpu/turn.h"

#define HK_MULTIPLY_ADD(sum, x, y) ((sum) + (x) * (y))

typedef uint32_t bits_of_vec __attribute__((vector_size(HK_VECTOR_BYTES)));

// hk_bf16_round in every lane.
HK_INLINE vec vec_round(vec x) {
    const bits_of_vec bits = (bits_of_vec)x;
    const pairs magnitude = (pairs)(bits & 0x7fffffff);
    const bits_of_vec nan = (bits_of_vec)(magnitude > 0x7f800000);
    const bits_of_vec tiny = (bits_of_vec)(magnitude < 0x00800000);
    const bits_of_vec nearest = bits + 0x7fff + (bits >> 16 & 1);
    const bits_of_vec rounded = (nearest & ~nan) | ((bits | 0x00400000) & nan);
    return (vec)(((rounded & ~tiny) | (bits & 0x80000000 & tiny)) & 0xffff0000);
}

// (low, high) in every lane, rounded.
HK_INLINE void round_pairs(pair *to, vec low, vec high) {
    const bits_of_vec both = (bits_of_vec)vec_round(low) >> 16 | (bits_of_vec)vec_round(high);
    memcpy(to, &both, sizeof both);
}

HK_INLINE void round_row(float *to, const float *from, int64_t count) {
    int64_t i = 0;
    for (; i + lanes <= count; i += lanes) vec_store(to + i, vec_round(vec_load(from + i)));
    for (; i < count; i++) to[i] = hk_bf16_float(hk_bf16_round(from[i]));
}

HK_INLINE void round_in_place(float *at, int64_t count) {
    round_row(at, at, count);
}

// Rounded into `room`, each row filled up with a zero to an even number of elements.
HK_INLINE struct left left_rows(float *room, const float *from, int64_t row, int64_t rows,
                                int64_t width) {
    const int64_t even = stored_rows(width) * stored_terms;
    for (int64_t i = 0; i < rows; i++) {
        round_row(room + i * even, from + i * row, width);
        if (width < even) room[i * even + width] = 0;
    }
    return (struct left){.at = room, .row = even};
}

// A step is one row.
HK_INLINE void round_step(float *to, const float *from, const float *next, int64_t count) {
    (void)next;
    round_row(to, from, count);
}

// panel[i, j] = from[i, j] for `depth` rows, zeros from `columns` on.
HK_INLINE void pack_rows(float *panel, const float *from, int64_t row, int64_t depth,
                         int64_t columns) {
    const int64_t count = columns < HK_PANEL ? columns : HK_PANEL;
    for (int64_t i = 0; i < depth; i++) {
        float *to = panel + i * HK_PANEL;
        round_row(to, from + i * row, count);
        for (int64_t j = count; j < HK_PANEL; j++) to[j] = 0;
    }
}

// The same from a row-major matrix of weights.
HK_INLINE void pack_weights(float *panel, const hk_bf16 *from, int64_t row, int64_t depth,
                            int64_t columns) {
    const int64_t count = columns < HK_PANEL ? columns : HK_PANEL;
    for (int64_t i = 0; i < depth; i++) {
        float *to = panel + i * HK_PANEL;
        for (int64_t j = 0; j < count; j++) to[j] = hk_bf16_float(from[i * row + j]);
        for (int64_t j = count; j < HK_PANEL; j++) to[j] = 0;
    }
}

HK_INLINE float step_of_weights(hk_bf16 only, hk_bf16 next) {
    (void)next;
    return hk_bf16_float(only);
}

// Volatile: read for every use, else it would take a register that a tile of 6 x 2 sums needs.
static const volatile union {
    int32_t lane[lanes];
    pairs all;
} upper_half = {.lane = {[0 ... lanes - 1] = (int32_t)0xffff0000}};

// In pairs of rows, the earlier ones (part 0) or the later ones.
HK_INLINE vec part_of_pairs(pairs both, int part) {
    return (vec)(part == 0 ? both << 16 : both & upper_half.all);
}

// `rows` rows of a panel of weights, one below the other.
HK_INLINE void widen_rows(float *to, const pair *from, int64_t rows) {
    for (int64_t i = 0; i < rows; i += 2) {
        for (int64_t j = 0; j < HK_PANEL; j += lanes) {
            const pair *at = from + i / 2 * HK_PANEL + j;
            pairs both;
            memcpy(&both, at, sizeof both);
            if (j % 16 == 0) __builtin_prefetch(at + rows / 2 * HK_PANEL, 0, 2);
            vec_store(to + i * HK_PANEL + j, part_of_pairs(both, 0));
            vec_store(to + (i + 1) * HK_PANEL + j, part_of_pairs(both, 1));
        }
    }
}

// to[j * to_row + i] = column j of row i, for `lanes` i and j. Rows lie in pairs: rows 2 i and 2 i + 1
// at from + i * from_row.
HK_INLINE void turn_paired_rows(float *to, int64_t to_row, const pair *from, int64_t from_row) {
    vec rows[lanes];
    for (int i = 0; i < lanes / 2; i++) {
        pairs both;
        memcpy(&both, from + i * from_row, sizeof both);
        rows[2 * i] = part_of_pairs(both, 0);
        rows[2 * i + 1] = part_of_pairs(both, 1);
    }
    turn_vectors(to, to_row, rows);
}

// The same from a row-major matrix.
HK_INLINE void turn_rows(float *to, int64_t to_row, const hk_bf16 *from, int64_t from_row) {
    typedef uint16_t words __attribute__((vector_size(HK_VECTOR_BYTES / 2)));
    vec rows[lanes];
    for (int i = 0; i < lanes; i++) {
        words row;
        memcpy(&row, from + i * from_row, sizeof row);
        rows[i] = (vec)(__builtin_convertvector(row, bits_of_vec) << 16);
    }
    turn_vectors(to, to_row, rows);
}

#endif
