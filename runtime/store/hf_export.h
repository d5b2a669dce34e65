// Parameters as a folder that Hugging Face's libraries load.
#ifndef HECATE_RUNTIME_STORE_HF_EXPORT_H
#define HECATE_RUNTIME_STORE_HF_EXPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/error.h"
#include "runtime/net/comm.h"
#include "runtime/params/slice.h"

struct hrt_hf_export {
    bool
        adapters; // They alone are written, as PEFT does, in the program's precision; else all the rest.
    bool merge; // Weights that stay packed get their adapters as they are written: on one rank.
    // A folder of the same model, whose config.json and files of the tokenizer are taken over. Adapters name it as
    // their base, if it is given.
    const char *like;
    const char *to;      // The folder to make; nothing has that name yet.
    int64_t shard_bytes; // Tensors of one file, at most; a larger tensor has one of its own.
};

// Writes a name and shape of the program's family for each parameter; experts each for itself. A tensor has the type
// that it has in `like`, bf16 for one of 8 bits; where `like` has no weights, the one that config.json says, by default
// bf16. The folder gets its name when all of it is durable; a failure leaves nothing behind. Collective, and all ranks
// agree on the result.
bool hrt_store_hf_write(const struct hrt_hf_export *export, const struct hrt_buffer *params,
                        struct hrt_comm *comm, struct hrt_error *error);

#endif
