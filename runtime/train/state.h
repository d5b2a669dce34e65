// The memory of a run: parameters, gradients, the optimizer's means and variances, the arena, one
// microbatch. All of it is taken here, once, and given back at the end.
#ifndef HECATE_RUNTIME_TRAIN_STATE_H
#define HECATE_RUNTIME_TRAIN_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/error.h"
#include "runtime/params/placement.h"
#include "runtime/params/tensor.h"
#include "runtime/program.h"

struct hrt_state {
    const struct hrt_program *program;
    struct hrt_placement *placement; // Borrowed; of this program.
    void *model;                     // The emitted struct, bound to the buffers below.
    void *values[HRT_VALUES];        // param_elements each; means and variances only in training.
    void *rounded;                   // Copies of parameters in bf16 (params/rounded.h), or NULL.
    void *arena;
    int32_t *ids, *targets; // [batch, positions]
    double *chunk_sums;     // One per chunk of all sets, and per rank: scratch of hrt_grad_norm.
    // Of programs of several ranks, see ranks.h; else NULL.
    struct hrt_comm *comm; // Borrowed.
    struct hrt_experts *experts;
    struct hrt_fssdp *fssdp; // Of programs that move experts.
    struct hrt_dense *dense;
};

// Reserves zeroed memory and binds the model. Pages are only taken when they are touched: a run
// that never computes gradients does not pay for them. `placement` is borrowed until hrt_state_destroy.
bool hrt_state_create(struct hrt_state *state, struct hrt_placement *placement, bool training,
                      struct hrt_error *error);

void hrt_state_destroy(struct hrt_state *state);

// Bytes of one parameter-shaped buffer.
size_t hrt_state_params_bytes(const struct hrt_program *program);

// Writes "3.2 GiB" or the like.
void hrt_format_bytes(char *out, size_t out_bytes, double bytes);

#endif
