// Elements of tensors of files, from the types that they are stored in to those of a program.
#ifndef HECATE_RUNTIME_STORE_STRIPS_H
#define HECATE_RUNTIME_STORE_STRIPS_H

#include <stdbool.h>
#include <stddef.h>

#include "runtime/params/safetensors_read.h"
#include "runtime/store/weights.h"

// Where the elements of one of our tensors lie in a tensor of a file: `rows` rows of `columns` elements from element
// `first` on, `row_step` from one row to the next, and `step` from one element of a row to the next. Turned: row o,
// column i is our element i * rows + o; else row i, column o is our element i * columns + o.
struct hrt_place {
    int64_t first, rows, columns, row_step, step;
    bool turned;
};

// One of our tensors in a file. Files are borrowed.
struct hrt_found {
    struct hrt_tensor tensor;
    struct hrt_safetensors *file;
    const struct hrt_stored *entry;
    // Factors: of 8 bits one for each block of 128 x 128, of MXFP4 one for each block. NULL: there are none.
    struct hrt_safetensors *scale_file;
    const struct hrt_stored *scale;
    bool mxfp4; // Elements are MXFP4; else they are of the type of `entry`.
    struct hrt_place place;
    bool watched; // Whether its values that are not finite are noted.
};

enum { HRT_SCALED = 128 }; // Rows and columns of a block of 8 bits with one factor.

// Reads `count` tensors into their places in the buffer, by all threads of the process; each element is rounded to the
// program's precision once, so the bits do not depend on threads. `doubts` (may be NULL) gets the first watched tensor
// with a value that is not finite. False: `error`; some of the tensors have been read then. Not collective.
bool hrt_store_read_found(const struct hrt_buffer *buffer, const struct hrt_found *found,
                          size_t count, struct hrt_store_doubts *doubts, struct hrt_error *error);

#endif
