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

// The adapter of a weight, and where an element of the weight finds its row and column.
struct hrt_adapter {
    const struct hrt_param *a, *b; // NULL: it has none.
    double *in, *out;              // [rank, ins], [rank, outs]
    int64_t rank, ins, outs;
    int64_t in_step[HRT_RANK_MAX], out_step[HRT_RANK_MAX]; // By dim of the weight.
};

// Reads the adapter of a tensor that this rank holds; it is freed by hrt_params_adapter_free. Not collective. False:
// out of memory.
bool hrt_params_adapter_read(struct hrt_adapter *adapter, const struct hrt_buffer *params,
                             const struct hrt_tensor *tensor, struct hrt_error *error);
void hrt_params_adapter_free(struct hrt_adapter *adapter);

// The sum that an adapter adds to element `index` of a weight [in, out]: that of scale * a @ b, with a [rank, in] and
// b [rank, out], in double precision. 0 where there is none. Deterministic.
double hrt_params_adapter_at(const struct hrt_program *program, const struct hrt_adapter *adapter,
                             const struct hrt_param *weight, int64_t index);

// Adds their adapters to all weights on this rank but those that stay packed, rounded once. Adapters stay as they are,
// so the parameters are good for writing the weights alone. Deterministic; not collective. False: ranks keep parts of a
// weight (parallel.dense = shard), or out of memory.
bool hrt_params_merge(const struct hrt_buffer *params, struct hrt_error *error);

#endif
