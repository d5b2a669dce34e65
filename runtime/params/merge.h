// Adapters added to the weights that they belong to.
#ifndef HECATE_RUNTIME_PARAMS_MERGE_H
#define HECATE_RUNTIME_PARAMS_MERGE_H

#include "runtime/base/error.h"
#include "runtime/params/slice.h"

// Whether the program has adapters.
bool hrt_params_has_adapters(const struct hrt_program *program);

// The weight that a matrix of an adapter belongs to; NULL: it is none.
const struct hrt_param *hrt_params_adapted(const struct hrt_program *program,
                                           const struct hrt_param *lora);

// Adds scale * a @ b to each weight w [in, out] on this rank, with a [rank, in] and b [rank, out], in double precision,
// rounded once. Adapters stay as they are, so the parameters are good for writing the weights alone. Deterministic; not
// collective. False: ranks keep parts of a weight (parallel.dense = shard), or out of memory.
bool hrt_params_merge(const struct hrt_buffer *params, struct hrt_error *error);

#endif
