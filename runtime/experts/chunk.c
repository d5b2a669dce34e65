// Answers questions about a layer's chunks: their owners, and their addresses on this rank.
#define _GNU_SOURCE // The program's name.
#include <errno.h>
#include <stdio.h>

#include "kernels/bf16.h"
#include "runtime/experts/moves.h"
#include "runtime/params/tensor.h"

void hrt_experts_planned(const struct hrt_fssdp *fssdp, int set, int64_t layer,
                         enum hpl_status status) {
    if (status == HPL_OK) return;
    fprintf(stderr, "%s: error: layer %d of set '%s' cannot be planned by '%s': %s\n",
            program_invocation_short_name, (int)layer, fssdp->program->set[set].name,
            fssdp->policy->name, hpl_status_text(status));
    hrt_net_comm_abort(fssdp->comm, HRT_EXIT_FAILED);
}

const int32_t *hrt_experts_layer_owners(const struct hrt_fssdp *fssdp, int set, int64_t layer) {
    return fssdp->state->placement->owner[set] + layer * fssdp->program->set[set].experts;
}

int64_t hrt_experts_chunk_element(const struct hrt_program *program, enum hrt_chunk_kind kind) {
    return kind == HRT_CHUNK_ROUNDED ? (int64_t)sizeof(hk_bf16)
                                     : hrt_params_element_bytes(program->precision);
}

char *hrt_experts_chunk(const struct hrt_fssdp *fssdp, int set, int64_t layer, int64_t expert,
                        enum hrt_chunk_kind kind) {
    const struct hrt_moving_set *moving = &fssdp->set[set];
    const struct hrt_state *state = fssdp->state;
    if (hrt_params_owner(fssdp->state->placement, set, layer, expert) == fssdp->comm->rank) {
        char *const buffer[] = {state->values[HRT_PARAMETERS], state->rounded,
                                state->values[HRT_GRADIENTS]};
        const int64_t at = hrt_params_chunk_offset(moving->set, layer, expert);
        return buffer[kind] + at * hrt_experts_chunk_element(fssdp->program, kind);
    }
    const int64_t own = kind == HRT_CHUNK_GRADS          ? layer % moving->slots.grad_layers
                        : fssdp->movement->rematerialize ? 0
                                                         : layer;
    const int64_t slot = own * moving->slots.replicas + moving->layer[layer].slot[expert];
    if (!moving->pool[kind]) return NULL;
    char *at = moving->pool[kind] + (size_t)slot * moving->stride[kind];
    return kind == HRT_CHUNK_GRADS ? at - moving->grads_at : at;
}
