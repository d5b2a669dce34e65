// operand: what a product takes from its two matrices, a real number or, in the builds with
// HK_OPERAND_BF16, a pair of bf16 (pair.h). A step of depth is `terms` terms of a sum. One source thus
// serves all precisions: it counts depth in steps, and what it copies, these functions convert.
#ifndef HECATE_KERNELS_CPU_OPERAND_H
#define HECATE_KERNELS_CPU_OPERAND_H

#include "kernels/cpu/pack.h"

#ifdef HK_OPERAND_BF16
#include "kernels/cpu/pair.h"
typedef pair operand;
typedef pairs operands;
enum { terms = 2 };
#else
typedef real operand;
typedef vec operands;
enum { terms = 1 };
#endif

HK_INLINE int64_t steps(int64_t count) {
    return (count + terms - 1) / terms;
}

// Rows as left operand.
struct left {
    const operand *at;
    int64_t row;
};

#ifdef HK_OPERAND_BF16

#define HK_MULTIPLY_ADD(sum, x, y) pairs_multiply_add(sum, x, y)

// Rounded into `room`, which has steps(width) elements for each row.
HK_INLINE struct left left_rows(real *room, const real *from, int64_t row, int64_t rows,
                                int64_t width) {
    for (int64_t i = 0; i < rows; i++) {
        pairs_of_row((pair *)room + i * steps(width), from + i * row, width);
    }
    return (struct left){(const pair *)room, steps(width)};
}

// panel[p, j] = rows `terms` p and following, at column j: zeros from `columns` on.
HK_INLINE void pack_rows(real *panel, const real *from, int64_t row, int64_t rows,
                         int64_t columns) {
    pack_pairs((pair *)panel, from, row, rows, columns);
}

#else

#define HK_MULTIPLY_ADD(sum, x, y) ((sum) + (x) * (y))

HK_INLINE struct left left_rows(real *room, const real *from, int64_t row, int64_t rows,
                                int64_t width) {
    (void)room, (void)rows, (void)width; // They are read where they lie.
    return (struct left){from, row};
}

HK_INLINE void pack_rows(real *panel, const real *from, int64_t row, int64_t rows,
                         int64_t columns) {
    pack_panel(panel, from, row, rows, columns);
}

#endif

#endif
