// Parameters in a file: safetensors, one tensor per path, row major, without padding. Rope tables
// are not stored: they follow from the model. Optimizer states are not part of it.
//
// Format: huggingface/safetensors README: u64 header length, JSON header, bytes of the tensors.
#ifndef HECATE_RUNTIME_PARAMS_STORE_H
#define HECATE_RUNTIME_PARAMS_STORE_H

#include <stdbool.h>

#include "runtime/base/error.h"
#include "runtime/comm/comm.h"
#include "runtime/program.h"

// Writes to a temporary name beside `path`, syncs, and renames: `path` is either as it was or whole.
bool hrt_store_save(const struct hrt_program *program, const void *params, const char *path,
                    struct hrt_error *error);

// The same on several ranks, all of which call it: rank 0 writes, and gets from the others the
// experts that it does not hold, one tensor at a time.
bool hrt_store_gather(const struct hrt_program *program, const void *params, struct hrt_comm *comm,
                      const char *path, struct hrt_error *error);

// Reads all parameters of the program that are on this rank, F32 or F64, rounding to its precision. The file is checked
// whole before the first parameter is changed: a malformed one, or one of another model, is refused
// with what is wrong.
bool hrt_store_load(const struct hrt_program *program, void *params, const char *path,
                    struct hrt_error *error);

// Tries whether `path` could be written, and leaves nothing behind.
bool hrt_store_check_writable(const char *path, struct hrt_error *error);

#endif
