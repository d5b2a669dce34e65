// matrix: instructions of a warp that work on matrices of bf16, as kernels/cuda/instructions.h documents them.
#ifndef HECATE_TESTS_SIMT_MATRIX_H
#define HECATE_TESTS_SIMT_MATRIX_H

#include "fiber.h"

namespace simt {

void load_matrices(uint32_t (&r)[4], uint32_t from, bool transposed, site_t site);
void multiply_matrices(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1,
                       site_t site);

} // namespace simt

#endif
