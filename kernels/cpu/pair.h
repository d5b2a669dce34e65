// pair: two bf16 side by side as operand, for processors that multiply such pairs and add both products;
// and functions that turn floats and weights into pairs. Only operand.h includes it.
#ifndef HECATE_KERNELS_CPU_PAIR_H
#define HECATE_KERNELS_CPU_PAIR_H

#include "kernels/cpu/avx512.h"
#include "kernels/cpu/operand_types.h"
#include "kernels/cpu/turn.h"

// In each four words, the second and the third change places.
#define HK_MIDDLES_EXCHANGED                                                                       \
    0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11, 12, 14, 13, 15, 16, 18, 17, 19, 20, 22, 21, 23, 24, 26,  \
        25, 27, 28, 30, 29, 31

// The processor's own: it rounds after each of the two products or after both, that is its choice.
HK_INLINE vec pairs_multiply_add(vec sum, pair x, pairs y) {
    return avx512_dot_pairs(sum, (pairs){0} + x, y);
}

#define HK_MULTIPLY_ADD(sum, x, y) pairs_multiply_add(sum, x, y)

HK_INLINE pair pair_of(float low, float high) {
    return (pair)(hk_bf16_round(low).bits | (uint32_t)hk_bf16_round(high).bits << 16);
}

// to[i] = (from[2 i], from[2 i + 1]); behind an odd last one comes zero.
HK_INLINE void pairs_of_row(pair *to, const float *from, int64_t count) {
    int64_t i = 0;
    for (; i + 32 <= count; i += 32) {
        const vec low = avx512_load(from + i), high = avx512_load(from + i + 16);
        const wide_words both = avx512_round_two(low, high);
        memcpy(to + i / 2, &both, sizeof both);
    }
    for (; i + 2 <= count; i += 2) to[i / 2] = pair_of(from[i], from[i + 1]);
    if (i < count) to[i / 2] = pair_of(from[i], 0);
}

// (low, high) in every lane, rounded.
HK_INLINE void round_pairs(pair *to, vec low, vec high) {
    // The instruction puts one half behind the other.
    static const int16_t order[32] = {0, 16, 1, 17, 2,  18, 3,  19, 4,  20, 5,  21, 6,  22, 7,  23,
                                      8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
    const wide_words interleave = avx512_load_words(order);
    avx512_store_words(to, avx512_permute(avx512_round_two(low, high), interleave));
}

// to[j] = (low[j], high[j]): a step of two rows.
HK_INLINE void round_step(pair *to, const float *low, const float *high, int64_t count) {
    int64_t j = 0;
    for (; j + 16 <= count; j += 16)
        round_pairs(to + j, avx512_load(low + j), avx512_load(high + j));
    for (; j < count; j++) to[j] = pair_of(low[j], high[j]);
}

// Rounded into `room`, which has steps(width) elements for each row.
HK_INLINE struct left left_rows(float *room, const float *from, int64_t row, int64_t rows,
                                int64_t width) {
    for (int64_t i = 0; i < rows; i++) {
        pairs_of_row((pair *)room + i * steps(width), from + i * row, width);
    }
    return (struct left){.at = (const pair *)room, .row = steps(width)};
}

// panel[i, j] = (from[2 i, j], from[2 i + 1, j]) for `depth` rows, zeros from `columns` on.
HK_INLINE void pack_rows(float *panel, const float *from, int64_t row, int64_t depth,
                         int64_t columns) {
    static const float zeros[HK_PANEL];
    const int64_t count = columns < HK_PANEL ? columns : HK_PANEL;
    for (int64_t i = 0; i < depth; i += 2) {
        pair *to = (pair *)panel + i / 2 * HK_PANEL;
        round_step(to, from + i * row, i + 1 < depth ? from + (i + 1) * row : zeros, count);
        for (int64_t j = count; j < HK_PANEL; j++) to[j] = 0;
    }
}

HK_INLINE pair step_of_weights(hk_bf16 low, hk_bf16 high) {
    return (pair)(low.bits | (uint32_t)high.bits << 16);
}

// The same from a row-major matrix of weights.
HK_INLINE void pack_weights(pair *panel, const hk_bf16 *from, int64_t row, int64_t depth,
                            int64_t columns) {
    const int64_t count = columns < HK_PANEL ? columns : HK_PANEL;
    for (int64_t i = 0; i < depth; i += 2) {
        pair *to = panel + i / 2 * HK_PANEL;
        const hk_bf16 *low = from + i * row, *high = low + row;
        for (int64_t j = 0; j < count; j++) {
            to[j] = step_of_weights(low[j], i + 1 < depth ? high[j] : (hk_bf16){0});
        }
        for (int64_t j = count; j < HK_PANEL; j++) to[j] = 0;
    }
}

// The functions below turn weights: pairs of neighbouring rows become pairs of neighbouring columns.

typedef int16_t words __attribute__((vector_size(HK_VECTOR_BYTES)));

// 64 bits hold two columns of two rows, row in row; with the middle words exchanged, they hold two rows of
// two columns.
HK_INLINE vec rows_of_columns(const pair *from) {
    words w;
    memcpy(&w, from, sizeof w);
    return (vec)__builtin_shufflevector(w, w, HK_MIDDLES_EXCHANGED);
}

// to[j * to_row + i] = columns 2 j and 2 j + 1 of row i, for `lanes` i and j. Rows lie in pairs: of
// rows 2 i and 2 i + 1 at from + i * from_row.
HK_INLINE void turn_paired_rows(pair *to, int64_t to_row, const pair *from, int64_t from_row) {
    for (int64_t j = 0; j < lanes; j += lanes / 2) {
        vec rows[lanes / 2];
        for (int i = 0; i < lanes / 2; i++) rows[i] = rows_of_columns(from + i * from_row + 2 * j);
        turn_double_lanes((float *)to + j * to_row, to_row, rows);
    }
}

// The same from a row-major matrix.
HK_INLINE void turn_rows(pair *to, int64_t to_row, const hk_bf16 *from, int64_t from_row) {
    vec rows[lanes];
    for (int i = 0; i < lanes; i++) memcpy(&rows[i], from + i * from_row, sizeof rows[i]);
    turn_vectors((float *)to, to_row, rows);
}

#endif
