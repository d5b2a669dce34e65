// Tensors of a folder that no program needs: those that follow from config.json, and copies.
#ifndef HECATE_RUNTIME_STORE_HF_NEEDLESS_H
#define HECATE_RUNTIME_STORE_HF_NEEDLESS_H

#include <stdbool.h>
#include <stddef.h>

#include "runtime/store/hf_folder.h"
#include "runtime/store/hf_names.h"

struct hrt_hf_needless {
    size_t count;
    const char *first; // The name of one of them, while the folder is open; NULL: there is none.
};

// Takes those tensors from `left`, an object of names that nothing has asked for: frequencies of rope, those that the
// family's rules pass over, and the head of
// a model whose embedding is its head, which must be the same bytes. Those that the index does not name count, too.
// False: the copy is another one, or cannot be read; the folder's error says so. Not collective.
bool hrt_store_hf_pass_needless(const struct hrt_hf_folder *folder,
                                const struct hrt_hf_family *family,
                                const struct hrt_program *program, struct json_t *left,
                                struct hrt_hf_needless *needless);

#endif
