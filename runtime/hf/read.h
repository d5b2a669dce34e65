// Elements of tensors of a folder, from the types that they are stored in to those of a program.
#ifndef HECATE_RUNTIME_HF_READ_H
#define HECATE_RUNTIME_HF_READ_H

#include <stdbool.h>
#include <stddef.h>

#include "runtime/hf/names.h"
#include "runtime/params/safetensors_read.h"
#include "runtime/params/store.h"

// One of our tensors in a folder. Files are borrowed.
struct hrt_hf_found {
    struct hrt_tensor tensor;
    struct hrt_safetensors *file;
    const struct hrt_stored *entry;
    // Factors: of 8 bits one for each block of 128 x 128, of MXFP4 one for each block. NULL: there are none.
    struct hrt_safetensors *scale_file;
    const struct hrt_stored *scale;
    const struct hrt_hf_layout *layout;
    struct hrt_hf_view view;
    bool watched; // Whether its values that are not finite are noted.
};

enum { HRT_HF_SCALED = 128 }; // Rows and columns of a block of 8 bits with one factor.

// Reads `count` tensors into their places in `params`, by all threads of the process; each element is rounded to the
// program's precision once, so the bits do not depend on threads. `doubts` (may be NULL) gets the first watched tensor
// with a value that is not finite. False: `error`; some of the tensors have been read then. Not collective.
bool hrt_hf_read(const struct hrt_program *program, const struct hrt_hf_found *found, size_t count,
                 void *params, struct hrt_store_doubts *doubts, struct hrt_error *error);

#endif
