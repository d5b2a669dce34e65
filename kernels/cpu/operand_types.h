// The types of operand.h, which pair.h and widen.h need, too. Others include operand.h.
#ifndef HECATE_KERNELS_CPU_OPERAND_TYPES_H
#define HECATE_KERNELS_CPU_OPERAND_TYPES_H

#include "kernels/cpu/pack.h"

#ifdef HK_OPERAND_BF16
// Two bf16 side by side. Arrays of pairs are read as arrays of hk_bf16, and the other way round.
typedef int32_t pair __attribute__((may_alias));
typedef int32_t pairs __attribute__((vector_size(HK_VECTOR_BYTES)));
#endif

// The rows at one place of a panel of weights: `stored_terms` of them. `rounds`: operands are copies.
#ifndef HK_OPERAND_BF16
typedef real stored, operand;
typedef vec operands;
enum { stored_terms = 1, terms = 1, rounds = 0 };
#elif defined(HK_HAS_PAIRS)
#define HK_PAIRS
typedef pair stored, operand;
typedef pairs operands;
enum { stored_terms = 2, terms = 2, rounds = 1 };
#else
#define HK_WIDENS
typedef pair stored;
typedef real operand;
typedef vec operands;
enum { stored_terms = 2, terms = 1, rounds = 1 };
#endif

HK_INLINE int64_t steps(int64_t count) {
    return (count + terms - 1) / terms;
}

HK_INLINE int64_t stored_rows(int64_t count) {
    return (count + stored_terms - 1) / stored_terms;
}

// Rows as left operand: `row` apart, or interleaved in tiles, `tile` apart (tile.h).
struct left {
    const operand *at;
    int64_t row;
    int64_t tile;
};

#endif
