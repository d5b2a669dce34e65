// operand: the elements that a GEMM takes from its two matrices. A real number; in the builds with HK_OPERAND_BF16 a
// bf16 value, as one of a pair where the processor multiplies pairs (pair.h), else as float (widen.h). A
// step of depth is `terms` terms of a sum. One source thus serves all precisions: it counts depth in
// steps, and copies, which these files convert.
#ifndef HECATE_KERNELS_CPU_OPERAND_H
#define HECATE_KERNELS_CPU_OPERAND_H

#include "kernels/cpu/operand_types.h"

#if defined(HK_PAIRS)
#include "kernels/cpu/pair.h"
#elif defined(HK_WIDENS)
#include "kernels/cpu/widen.h"
#else

#define HK_MULTIPLY_ADD(sum, x, y) ((sum) + (x) * (y))

// A computed value serves as operand as it is.
HK_INLINE vec vec_round(vec x) {
    return x;
}

HK_INLINE void round_in_place(real *at, int64_t count) {
    (void)at, (void)count;
}

// Where the operands are rounded: into `room`, of which each row takes stored_rows(width) * stored_terms
// / terms elements, filled up with zeros.
HK_INLINE struct left left_rows(real *room, const real *from, int64_t row, int64_t rows,
                                int64_t width) {
    (void)room, (void)rows, (void)width; // They are read where they lie.
    return (struct left){.at = from, .row = row};
}

// panel[p, j] = rows `terms` p and following, at column j: zeros from `columns` on.
HK_INLINE void pack_rows(real *panel, const real *from, int64_t row, int64_t rows,
                         int64_t columns) {
    pack_panel(panel, from, row, rows, columns);
}

// The same from a row-major matrix of weights.
HK_INLINE void pack_weights(operand *panel, const real *from, int64_t row, int64_t rows,
                            int64_t columns) {
    pack_panel(panel, from, row, rows, columns);
}

#endif

#endif
