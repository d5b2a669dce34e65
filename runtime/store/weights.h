// Parameters in a file: safetensors, one tensor per path, row major, without padding. Rope tables
// are not stored: they follow from the model. Optimizer states are not part of it.
//
// Format: huggingface/safetensors README: u64 header length, JSON header, bytes of the tensors.
#ifndef HECATE_RUNTIME_STORE_WEIGHTS_H
#define HECATE_RUNTIME_STORE_WEIGHTS_H

#include <stdbool.h>

#include "runtime/base/error.h"
#include "runtime/net/comm.h"
#include "runtime/params/slice.h"

// Replaces the file (hf_replace_begin): `path` is either as it was or whole.
bool hrt_store_save(const struct hrt_buffer *params, const char *path, struct hrt_error *error);

// The same on several ranks, all of which call it: rank 0 writes, and gets from the others the
// experts that it does not hold, one slice at a time. On false only rank 0 has the error.
bool hrt_store_gather(const struct hrt_buffer *params, struct hrt_comm *comm, const char *path,
                      struct hrt_error *error);

// The tensors of a loadable file that should not be in it.
struct hrt_store_doubts {
    char model[512]; // A sentence: it was saved by a model of another name. Empty: no.
    char values
        [512]; // A sentence: this rank's first tensor with values that are not finite. Empty: none.
    char left
        [512]; // A sentence: the tensors that belong into the file and have not been read. Empty: none.
};

// Reads all parameters of the program that are on this rank, F64, F32, BF16 or F16, by all threads, rounding to its
// precision. The header is checked whole before the first parameter is changed: a malformed one, or one with other
// tensors than the program's, is refused with the reason. `doubts` is filled in when that is not NULL.
bool hrt_store_restore(const struct hrt_buffer *params, const char *path,
                       struct hrt_store_doubts *doubts, struct hrt_error *error);

// Which tensors are read, of those that there are. `takes` NULL: all.
struct hrt_store_choice {
    bool (*takes)(const void *context, const struct hrt_tensor *tensor);
    const void *context;
};

// The same of any values of the parameters, from several files that have a part of the tensors each.
bool hrt_store_restore_parts(const struct hrt_buffer *buffer, enum hrt_values values,
                             const char *const *path, int paths, struct hrt_store_choice choice,
                             struct hrt_store_doubts *doubts, struct hrt_error *error);

// Tries whether `path` could be written, and leaves nothing behind.
bool hrt_store_check_writable(const char *path, struct hrt_error *error);

#endif
