// Sizes of a GEMM: A [m, k], B [k, n], C [m, n].
#ifndef HECATE_KERNELS_DIMS_H
#define HECATE_KERNELS_DIMS_H

#include <stdint.h>

#include "kernels/types.h"

struct hk_matmul_dims {
    int64_t m;               // Rows: tokens.
    int64_t n;               // Columns of B: the layer's output width.
    int64_t k;               // Rows of B: the layer's input width.
    enum hk_packing packing; // A B in panels may be packed, where bf16 GEMMs nn and nt read it.
};

#endif
