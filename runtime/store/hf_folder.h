// A folder of weights as Hugging Face's libraries write it: model.safetensors, or shards with an index that says which
// tensor lies in which. Neither is trusted.
#ifndef HECATE_RUNTIME_STORE_HF_FOLDER_H
#define HECATE_RUNTIME_STORE_HF_FOLDER_H

#include <stdbool.h>

#include "runtime/base/error.h"
#include "runtime/params/safetensors_read.h"

// The prefix of names of a text model where it is a part of one that also reads images. Here they are without it, and
// other tensors are not there.
#define HRT_HF_TEXT_MODEL "language_model."
// Its form in newer folders, which have the head outside of it.
#define HRT_HF_TEXT_BODY "model.language_model."
#define HRT_HF_HEAD "lm_head.weight"

// The prefix of all names but the head's. AutoModel, which has no head, saves names without it; lookups add it.
#define HRT_HF_BODY "model."

struct hrt_hf_folder {
    const char *path; // Borrowed.
    struct hrt_safetensors *file;
    char **name; // Names of the files.
    int files;
    struct json_t *where;     // From the name of a tensor to the number of its file.
    size_t passed;            // Tensors of parts that are not the text model, where names say so.
    size_t beside;            // Tensors that lie where the index does not say;
    const char *beside_first; // the name of one of them.
    bool bare;                // Names are those of a model without its head: they lack HRT_HF_BODY.
    struct hrt_error *error;
};

// Whether `path` is such a folder, by its content: weights under their names, or config.json.
bool hrt_store_hf_is_folder(const char *path);

// Whether it holds weights.
bool hrt_store_hf_has_weights(const char *path);

// Opens all files and reads their headers. Tensors of the index must lie where it says; other tensors beside them do
// not count. Close it in either case. False: `error` names the fault and its file, later ones too.
bool hrt_store_hf_folder_open(struct hrt_hf_folder *folder, const char *path,
                              struct hrt_error *error);

// The same of a folder of adapters (runtime/store/peft.h), which has one file.
bool hrt_store_hf_folder_open_adapters(struct hrt_hf_folder *folder, const char *path,
                                       struct hrt_error *error);

// Also of a zeroed one.
void hrt_store_hf_folder_close(struct hrt_hf_folder *folder);

// Whether a tensor has this shape.
bool hrt_store_hf_has_shape(const struct hrt_stored *entry, const int64_t *shape, int rank);

// Whether two tensors are of one type and shape, and the same bytes; where one of them is NULL, not. False: they cannot
// be read.
bool hrt_store_hf_same(struct hrt_safetensors *file[2], const struct hrt_stored *entry[2],
                       bool *same);

// The tensor of that name, and the file that it lies in; NULL: there is none.
const struct hrt_stored *hrt_store_hf_find(const struct hrt_hf_folder *folder, const char *name,
                                           struct hrt_safetensors **file);

#endif
