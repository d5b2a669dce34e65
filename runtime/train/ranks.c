// What ranks hold and share.
#include "runtime/train/ranks.h"

#include <stdlib.h>

#include "runtime/experts/experts.h"
#include "runtime/params/tensor.h"

bool hrt_ranks_has_expert(const struct hrt_program *program, const struct hrt_set *set,
                          int64_t expert) {
    return !program->owned ||
           hrt_expert_owner(expert, set->experts, (int)program->world) == program->rank;
}

int64_t hrt_ranks_chunks(const struct hrt_program *program) {
    int64_t chunks = 0;
    for (int i = 0; i < program->sets; i++)
        chunks += program->set[i].layers * program->set[i].experts;
    return chunks;
}

// The n-th expert that is here, by number, is chunk n of the model's tables. What follows the last
// one is never read: those experts have no rows. It points at the buffer's start.
static void point_at_chunks(struct hrt_state *state, const struct hrt_set *set) {
    const struct hrt_program *program = state->program;
    const int64_t bytes = hrt_element_bytes(program->precision);
    char **chunks = (char **)((char *)state->model + set->chunks);
    char **grads = (char **)((char *)state->model + set->chunk_grads);
    for (int64_t layer = 0; layer < set->layers; layer++) {
        int64_t n = layer * set->experts;
        const int64_t end = n + set->experts;
        for (int64_t e = 0; e < set->experts; e++) {
            if (!hrt_ranks_has_expert(program, set, e)) continue;
            const int64_t chunk = layer * set->experts + e;
            const int64_t at = (set->offset + chunk * set->chunk_elements) * bytes;
            chunks[n] = (char *)state->params + at;
            grads[n++] = (char *)state->grads + at;
        }
        for (; n < end; n++) {
            chunks[n] = state->params;
            grads[n] = state->grads;
        }
    }
}

bool hrt_ranks_join(struct hrt_state *state, struct hrt_comm *comm, struct hrt_error *error) {
    const struct hrt_program *program = state->program;
    if (!program->world) return true;
    state->comm = comm;
    if (!program->sets) return true;
    struct hrt_experts_set *set = calloc((size_t)program->sets + 1, sizeof *set);
    if (!set) return hrt_fail(error, "out of memory");
    for (int i = 0; i < program->sets; i++) {
        const struct hrt_set *from = &program->set[i];
        set[i] = (struct hrt_experts_set){
            .experts = from->experts,
            .picks = from->topk,
            .layers = from->layers,
            .width = program->owned ? from->width : 1,
            .slots = from->experts,
            .rows_max = program->owned ? from->rows_max : 1,
        };
        if (program->owned) point_at_chunks(state, from);
    }
    const struct hrt_experts_shape shape = {
        .sets = program->sets,
        .set = set,
        .tokens = program->batch * program->positions,
        .element = (size_t)hrt_element_bytes(program->precision),
    };
    const bool created = hrt_experts_create(&state->experts, &shape, comm, error);
    free(set);
    if (!created) return false;
    *(struct hrt_experts **)((char *)state->model + program->experts_offset) = state->experts;
    return true;
}

void hrt_ranks_sum_gradients(const struct hrt_state *state) {
    const struct hrt_program *program = state->program;
    if (!program->world) return;
    int64_t shared =
        program->param_elements; // What lies before the first set, where experts have owners.
    for (int i = 0; program->owned && i < program->sets; i++) {
        if (program->set[i].offset < shared) shared = program->set[i].offset;
    }
    hrt_comm_all_reduce(state->comm, state->grads, shared,
                        program->precision == HRT_FP64 ? HRT_DOUBLE : HRT_FLOAT);
}

bool hrt_ranks_agree(struct hrt_comm *comm, bool sound, struct hrt_error *error) {
    if (comm->size == 1) return sound;
    int64_t *code = calloc((size_t)comm->size, sizeof *code);
    if (!code) return hrt_fail(error, "out of memory");
    if (!sound) code[comm->rank] = error->code;
    hrt_comm_all_reduce(comm, code, comm->size, HRT_INT64);
    int lowest = 0;
    while (lowest < comm->size && !code[lowest]) lowest++;
    if (lowest < comm->size) {
        if (lowest != comm->rank) *error = (struct hrt_error){.code = (enum hrt_exit)code[lowest]};
        error->shared = true;
    }
    const bool all = lowest == comm->size;
    free(code);
    return all;
}
