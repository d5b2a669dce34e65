// CPU twin of copy_rows.
#include "kernels/copy_rows/copy_rows.h"

#include <string.h>

static int64_t number(const struct hk_rows *side, int64_t i) {
    return side->at ? side->at[i] : i;
}

static char *row_at(const struct hk_rows *side, int64_t number) {
    return side->rows + (size_t)(number / side->share) * side->stride;
}

static char *gate_at(const struct hk_rows *side, int64_t number) {
    return side->gates + (size_t)number * side->gate_stride;
}

void hk_copy_rows(const struct hk_rows *to, const struct hk_rows *from, int64_t count, size_t row,
                  size_t gate) {
    const int gated = to->gates && from->gates;
#pragma omp parallel for schedule(static) if (count > 1)
    for (int64_t i = 0; i < count; i++) {
        const int64_t there = number(to, i), here = number(from, i);
        memcpy(row_at(to, there), row_at(from, here), row);
        if (gated) memcpy(gate_at(to, there), gate_at(from, here), gate);
    }
}
