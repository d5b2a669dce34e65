// Tensors by name: the contents of a file, in its order.
#ifndef HECATE_RUNTIME_PARAMS_LISTING_H
#define HECATE_RUNTIME_PARAMS_LISTING_H

#include <stdbool.h>
#include <stddef.h>

#include "runtime/base/error.h"
#include "runtime/params/tensor.h"
#include "runtime/program.h"

struct hrt_named_tensor {
    char path[HRT_PATH_MAX];
    struct hrt_tensor tensor;
};

struct hrt_listing { // Sorted by path.
    struct hrt_named_tensor *entry;
    size_t entries;
};

// Whether files hold these values of a parameter: of rope tables none, which follow from the model, and of what is not
// trained no state of the optimizer.
bool hrt_params_is_stored(const struct hrt_param *param, enum hrt_values values);

// All tensors of the program whose `values` files hold. The caller frees it. False: out of memory.
bool hrt_params_listing_create(struct hrt_listing *listing, const struct hrt_program *program,
                               enum hrt_values values, struct hrt_error *error);

// Also of a zeroed one.
void hrt_params_listing_free(struct hrt_listing *listing);

#endif
