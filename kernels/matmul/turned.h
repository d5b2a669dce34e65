// turned: blocks of B^T as panels, for nt.
#ifndef HECATE_KERNELS_MATMUL_TURNED_H
#define HECATE_KERNELS_MATMUL_TURNED_H

#include "kernels/cpu/tile.h"
#include "kernels/matmul/product.h"
#include "kernels/matmul/unpack.h"
#include "kernels/matmul/walk.h"

// Where row `stored_terms` i of panel j of B lies.
HK_INLINE const stored *panel_at(const weight *b, const struct product *p, int64_t j, int64_t i) {
    return (const stored *)b + (j * stored_rows(p->k) + i) * HK_PANEL;
}

#ifdef HK_OPERAND_BF16

HK_INLINE hk_bf16 weight_at(const weight *b, const struct product *p, int64_t i, int64_t j) {
    if (j >= p->n) return (hk_bf16){0};
    if (p->layout == HK_ROWS) return b[i * p->n + j];
    const pair *at = panel_at(b, p, j / HK_PANEL, i / 2) + j % HK_PANEL;
    return ((const hk_bf16 *)at)[i % 2];
}

// Lines of as many rows of a panel as a square has, behind it.
HK_INLINE void ask_for_square_below(const pair *square) {
    const int64_t rows = lanes / stored_terms, width = lanes * terms * (int64_t)sizeof(pair);
    for (int64_t at = 0; at < width; at += 64) {
        ask_for_rows((const char *)(square + rows * HK_PANEL) + at, HK_PANEL * sizeof(pair), rows);
    }
}

// Rows of B [64 j, ..) as columns, columns of B [begin, begin + width) as depth.
static void turn_stored(operand *packed, const weight *b, const struct product *p, int64_t j,
                        int64_t begin, int64_t width) {
    const int64_t row = j * HK_PANEL, columns = smaller(p->k - row, HK_PANEL);
    const int64_t whole_columns = columns / lanes * lanes;
    const int64_t whole_depth = width / terms / lanes * lanes;
    for (int64_t d = 0; d < whole_depth; d += lanes) {
        const int64_t column = begin + d * terms;
        for (int64_t i = 0; i < whole_columns; i += lanes) {
            operand *to = packed + d * HK_PANEL + i;
            if (p->layout == HK_PANELS) {
                const pair *square =
                    panel_at(b, p, column / HK_PANEL, (row + i) / stored_terms) + column % HK_PANEL;
                ask_for_square_below(square);
                turn_paired_rows(to, HK_PANEL, square, HK_PANEL);
            } else {
                turn_rows(to, HK_PANEL, b + (row + i) * p->n + column, p->n);
            }
        }
    }
    for (int64_t d = 0; d < steps(width); d++) {
        operand *to = packed + d * HK_PANEL;
        const int64_t done = d < whole_depth ? whole_columns : 0, column = begin + d * terms;
        for (int64_t i = done; i < columns; i++) {
            to[i] = step_of_weights(weight_at(b, p, row + i, column),
                                    weight_at(b, p, row + i, column + 1));
        }
        for (int64_t i = columns; i < HK_PANEL; i++) to[i] = 0;
    }
}

// The same of packed weights: a matrix of these rows and columns is unpacked first.
static void turn_block(operand *packed, const weight *b, const struct product *p, int64_t j,
                       int64_t begin, int64_t width) {
    enum { panels_max = depth_max * terms / HK_PANEL };
    pair room[panels_max * (HK_PANEL / 2) * HK_PANEL] __attribute__((aligned(64)));
    if (!p->packing) {
        turn_stored(packed, b, p, j, begin, width);
        return;
    }
    struct product some = *p;
    some.k = smaller(p->k - j * HK_PANEL, HK_PANEL);
    some.n = width;
    for (int64_t d = 0; d < width; d += HK_PANEL)
        unpack_rows(room + d / HK_PANEL * stored_rows(some.k) * HK_PANEL, b, p,
                    (begin + d) / HK_PANEL, j * HK_PANEL, some.k);
    turn_stored(packed, (const weight *)room, &some, 0, 0, width);
}

#else

static void turn_block(operand *packed, const weight *b, const struct product *p, int64_t j,
                       int64_t begin, int64_t width) {
    const int64_t columns = smaller(p->k - j * HK_PANEL, HK_PANEL);
    if (p->layout == HK_ROWS) {
        pack_turned(packed, b + j * HK_PANEL * p->n + begin, p->n, width, columns, true);
        return;
    }
    for (int64_t d = 0; d < width; d += HK_PANEL) { // `begin` is a multiple of HK_PANEL.
        const stored *from = panel_at(b, p, (begin + d) / HK_PANEL, j * HK_PANEL);
        pack_turned(packed + d * HK_PANEL, from, HK_PANEL, smaller(width - d, HK_PANEL), columns,
                    true);
    }
}

#endif

#endif
