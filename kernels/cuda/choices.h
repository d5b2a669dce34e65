// choices: the kernel for a dense GEMM on a GPU, by its shape. A table that `hecatec --tune=FILE --target=cuda`
// measured, and HECATE_PRODUCTS=FILE names:
//
//   hecate-products 1 sm_90
//   bf16 nn m=2048 n=4096 k=1024 own=31.0 cublaslt=27.5 cublaslt
//
// Times are in microseconds; the last word decides, and may be edited. A GEMM takes the line of its type and form whose
// shape is nearest: the fewest doublings of m, n and k together, the first of equals; own where that is more than
// three.
#ifndef HECATE_KERNELS_CUDA_CHOICES_H
#define HECATE_KERNELS_CUDA_CHOICES_H

#include <stdio.h>

#include "kernels/cuda/library.h"

struct hkc_choice {
    struct hkc_shape shape;
    double own, library; // Microseconds.
    bool by_library;
};

enum { HKC_CHOICES_MAX = 1024 };

struct hkc_choices {
    int count;
    struct hkc_choice choice[HKC_CHOICES_MAX];
};

// Whether the library computes a GEMM of this shape.
bool hkc_choose(const struct hkc_choices *choices, const struct hkc_shape *shape);

// For a device of this `capability` (lane.h). Reading names a fault in `why`, with the file and the line.
bool hkc_choices_read(struct hkc_choices *choices, const char *path, int capability, char *why,
                      size_t why_bytes);
void hkc_choices_write(FILE *out, const struct hkc_choices *choices, int capability);

#endif
