// copy_rows: rows from one place to another by index, each with its gate weight: to messages and out of them.
#ifndef HECATE_KERNELS_COPY_ROWS_H
#define HECATE_KERNELS_COPY_ROWS_H

#include <stddef.h>
#include <stdint.h>

// One side of a copy. Row i has the number n = at[i], or i where `at` is NULL. It lies at rows + n / share * stride,
// its weight at gates + n * gate_stride.
struct hk_rows {
    char *rows, *gates; // Nothing is written to the side that is read.
    const int32_t *at;
    int32_t share; // Numbers of one row, at least 1: the top-k choices of a token.
    size_t stride, gate_stride;
};

// Copies `count` rows of `row` bytes, and where both sides have `gates` a weight of `gate` bytes with each. The sides
// do not overlap.
void hk_copy_rows(const struct hk_rows *to, const struct hk_rows *from, int64_t count, size_t row,
                  size_t gate);

#endif
