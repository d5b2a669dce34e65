// The list of a program's tensors, by name.
#include "runtime/params/listing.h"

#include <stdlib.h>
#include <string.h>

static int by_path(const void *a, const void *b) {
    const struct hrt_named_tensor *left = a, *right = b;
    return strcmp(left->path, right->path);
}

bool hrt_params_is_stored(const struct hrt_param *param, enum hrt_values values) {
    return param->init != HRT_INIT_ROPE && (values < HRT_MEANS || param->trainable);
}

bool hrt_params_listing_create(struct hrt_listing *listing, const struct hrt_program *program,
                               enum hrt_values values, struct hrt_error *error) {
    size_t tensors = 0;
    for (int i = 0; i < program->params; i++)
        tensors += (size_t)hrt_params_tensors(program, &program->param[i]);
    *listing = (struct hrt_listing){.entry = calloc(tensors + 1, sizeof *listing->entry)};
    if (!listing->entry) return hrt_fail(error, "out of memory");

    struct hrt_tensor tensor = {0};
    while (hrt_params_tensor_next(program, &tensor)) {
        if (!hrt_params_is_stored(tensor.param, values)) continue;
        struct hrt_named_tensor *entry = &listing->entry[listing->entries++];
        entry->tensor = tensor;
        hrt_params_tensor_path(&tensor, entry->path);
    }
    qsort(listing->entry, listing->entries, sizeof *listing->entry, by_path);
    return true;
}

void hrt_params_listing_free(struct hrt_listing *listing) {
    free(listing->entry);
    *listing = (struct hrt_listing){0};
}
