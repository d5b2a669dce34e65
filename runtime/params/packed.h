// Parameters that stay packed (struct hrt_param, packing): elements of their tensors, which lie in blocks of rows of
// the matrix (kernels/packed/packed.h).
#ifndef HECATE_RUNTIME_PARAMS_PACKED_H
#define HECATE_RUNTIME_PARAMS_PACKED_H

#include <stdint.h>

#include "runtime/program.h"

// Elements that are written together, from a multiple of as many on: whole rows of blocks, so that a scale is chosen
// once. The last ones of a tensor may be fewer. 1: they are not packed.
int64_t hrt_params_unit(const struct hrt_param *param);

// Elements first .. first + count - 1 of the tensor that begins at `stored`, row major over the shape, as floats.
void hrt_params_packed_read(const struct hrt_param *param, const void *stored, int64_t first,
                            int64_t count, float *elements);

// Packs elements that are written together.
void hrt_params_packed_write(const struct hrt_param *param, void *stored, int64_t first,
                             int64_t count, const float *elements);

// Packs a block: elements of the matrix from [row, column] on, both at the beginning of one, `rows` x `columns`,
// `pitch` from row to row. `scale`: it made them from elements of fp8; 0: a scale is chosen.
void hrt_params_packed_put(const struct hrt_param *param, void *stored, int64_t row, int64_t column,
                           int64_t rows, int64_t columns, int64_t pitch, const float *elements,
                           float scale);

#endif
