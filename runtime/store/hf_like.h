// The folder that an export is made like: types of its tensors, and files that are taken over as they are.
#ifndef HECATE_RUNTIME_STORE_HF_LIKE_H
#define HECATE_RUNTIME_STORE_HF_LIKE_H

#include <stdbool.h>

#include "runtime/base/error.h"
#include "runtime/params/element.h"
#include "runtime/store/hf_folder.h"
#include "runtime/store/hf_names.h"

struct hrt_hf_like {
    const char *path; // Borrowed.
    struct json_t *config;
    struct hrt_hf_folder folder; // Without files where it has no weights.
};

// Opens it: it has a config.json. Close it in either case.
bool hrt_store_hf_like_open(struct hrt_hf_like *like, const char *path, struct hrt_error *error);
void hrt_store_hf_like_close(struct hrt_hf_like *like);

// The type of one of our tensors, in whichever layout it is there; `view` is of the first. False: there are weights,
// and none such, or one of another shape in the first.
bool hrt_store_hf_like_type(const struct hrt_hf_like *like, const struct hrt_program *program,
                            const struct hrt_tensor *tensor, const struct hrt_hf_rule *rule,
                            const struct hrt_hf_view *view, enum hrt_hf_type *type,
                            struct hrt_error *error);

// Writes config.json and the files that are taken over into the folder `to`, each durable. The entry that says how
// weights were quantized is left out, as ours are not, and there is a layer that predicts further tokens, or none.
bool hrt_store_hf_like_copy(const struct hrt_hf_like *like, bool predicts, const char *to,
                            struct hrt_error *error);

// The files that are taken over, without config.json.
bool hrt_store_hf_like_copy_others(const struct hrt_hf_like *like, const char *to,
                                   struct hrt_error *error);

// Writes an object as config.json of the folder `to`, durable.
bool hrt_store_hf_write_config(struct json_t *config, const char *to, struct hrt_error *error);

#endif
