// hecate-upcycle: shared by its files. Functions that fail say why in `error`.
#ifndef HECATE_TOOLS_UPCYCLE_UPCYCLE_H
#define HECATE_TOOLS_UPCYCLE_UPCYCLE_H

#include <jansson.h>
#include <stdint.h>

#include "runtime/base/error.h"
#include "runtime/store/hf_folder.h"

struct options {
    const char *from, *to;                     // Folders.
    int64_t experts, topk, split, shard_bytes; // --experts, --topk, --split, --shard-bytes
    int64_t seed;                              // --seed
    double noise, reinit;                      // --noise, --reinit
};

// A family without experts, and the one that it becomes.
struct family {
    const char *dense, *moe, *class; // `class`: of transformers.
    const char *experts, *width;     // Keys of config.json: how many, and of how many units.
    const char *router, *expert;     // Names in a layer, of experts with their number and part.
    const char *part[3];             // Names of gate_proj, up_proj and down_proj there.
    const char *usual;               // Values of keys that are not there, as JSON.
    const char *always;              // Values of keys that are there or not, as JSON.
    const char *refused[4];          // Keys that must not be true: `moe` has nothing like it.
    const char *dropped[4];          // Keys that mean nothing there.
};

// A model to be made.
struct model {
    const struct family *family;
    int64_t layers;
    int64_t size, units; // Elements of a row of the residual; hidden ones of an MLP.
    double deviation;    // New routers have it.
    json_t *config;      // Owned: of the model with experts.
};

// Reads a config.json, `dense`, of the file `path`. The caller frees model->config in either case.
bool upcycle_config(struct model *model, const struct options *options, const json_t *dense,
                    const char *path, struct hrt_error *error);

// Writes all tensors, and the index of several files, into the folder `to`. Memory: names of tensors, and a block.
// The same folder, options and seed give the same bytes.
bool upcycle_weights(const struct model *model, const struct options *options,
                     const struct hrt_hf_folder *folder, const char *to, struct hrt_error *error);

#endif
