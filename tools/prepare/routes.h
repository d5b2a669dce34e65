// Expert ids as engines of rollouts give them, and files of ids (runtime/route/ids_file.h) made of them.
#ifndef HECATE_TOOLS_PREPARE_ROUTES_H
#define HECATE_TOOLS_PREPARE_ROUTES_H

#include <jansson.h>
#include <stdint.h>

#include "runtime/base/error.h"

struct routes {
    int64_t sequences, tokens; // Sequences have equally many tokens.
    int64_t layers, topk;
    int32_t *id; // Owned; [sequences][tokens][layers][topk].
};

// Reads an array of integers of NumPy's format (.npy): [tokens, layers, topk], or [sequences, tokens, layers, topk].
// `layers` and `topk`: those that it has to have. Sets `routes`, whose ids may have any value. False, with `error`:
// it is another array; `routes` then holds nothing.
bool routes_of_npy(const void *bytes, size_t count, int64_t layers, int64_t topk,
                   struct routes *routes, struct hrt_error *error);

// Adds the ids of one value of a JSON record behind those that `routes` holds, of one sequence: lists of integers
// [tokens][layers][topk], or the base64 text of an .npy file, or of little-endian int32 alone. A zeroed `routes` holds
// none. False, with `error`: it is no such value.
bool routes_add(struct routes *routes, const json_t *value, int64_t layers, int64_t topk,
                struct hrt_error *error);

// Frees, and zeroes `routes`.
void routes_free(struct routes *routes);

struct options;
struct routes_file; // A file of ids on its way.

// Begins the file at `path`, of the model that the options tell of. NULL, with `error`: it failed.
struct routes_file *routes_begin(const struct options *options, const char *path,
                                 struct hrt_error *error);

// Adds the routes of an answer, or of its record, to a sequence of `tokens` tokens, of which all but perhaps the last
// have routes. False, with `error`: they have none, or others.
bool routes_put(struct routes_file *file, const json_t *record, const json_t *answer,
                int64_t tokens, struct hrt_error *error);

// Ends the file, and frees it. Not `sound`: programs will refuse it. False, with `error`: it failed.
bool routes_end(struct routes_file *file, bool sound, struct hrt_error *error);

#endif
