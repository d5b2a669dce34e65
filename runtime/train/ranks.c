// The memory of a rank, and the parts that it shares.
#include "runtime/train/ranks.h"

#include <stdlib.h>

#include "kernels/bf16.h"
#include "runtime/experts/experts.h"
#include "runtime/experts/fssdp_run.h"
#include "runtime/net/transport.h"
#include "runtime/params/placement.h"
#include "runtime/params/tensor.h"
#include "runtime/train/dense.h"

int64_t hrt_train_ranks_chunks(const struct hrt_program *program) {
    int64_t chunks = 0;
    for (int i = 0; i < program->sets; i++)
        chunks += program->set[i].layers * program->set[i].experts;
    return chunks;
}

// The n-th expert that is here, by number, is chunk n of the model's tables. Entries behind the last one
// are never read: those experts have no rows. They point at the buffer's start.
static void point_at_chunks(struct hrt_state *state, int index) {
    const struct hrt_program *program = state->program;
    const struct hrt_set *set = &program->set[index];
    const int64_t bytes = hrt_params_element_bytes(program->precision);
    char **chunks = (char **)((char *)state->model + set->chunks);
    char **grads = (char **)((char *)state->model + set->chunk_grads);
    const hk_bf16 **rounded = (const hk_bf16 **)((char *)state->model + set->chunk_rounded);
    for (int64_t layer = 0; layer < set->layers; layer++) {
        int64_t n = layer * set->experts;
        const int64_t end = n + set->experts;
        for (int64_t e = 0; e < set->experts; e++) {
            if (!hrt_params_owns(state->placement, index, layer, e)) continue;
            const int64_t at = hrt_params_chunk_offset(set, layer, e);
            if (set->chunk_rounded) rounded[n] = (const hk_bf16 *)state->rounded + at;
            chunks[n] = (char *)state->values[HRT_PARAMETERS] + at * bytes;
            grads[n++] = (char *)state->values[HRT_GRADIENTS] + at * bytes;
        }
        for (; n < end; n++) {
            if (set->chunk_rounded) rounded[n] = state->rounded;
            chunks[n] = state->values[HRT_PARAMETERS];
            grads[n] = state->values[HRT_GRADIENTS];
        }
    }
}

// Describes a set to the exchange of rows; where every rank has all experts, only counts move.
static struct hrt_experts_set moving_set(const struct hrt_program *program, int index) {
    const struct hrt_set *set = &program->set[index];
    return (struct hrt_experts_set){
        .name = set->name,
        .experts = set->experts,
        .picks = set->topk,
        .layers = set->layers,
        .width = program->owned ? set->width : 1,
        .slots = set->experts,
        .holders = hrt_experts_fssdp_holders(program, index),
        .wave_rows = program->owned ? set->wave_rows : 1,
        .limited = set->limited,
        .bf16 = program->owned && set->rows_bf16,
    };
}

// Fills in `shape`; false: out of memory. The caller frees `*set`.
static bool moving_shape(const struct hrt_program *program, struct hrt_experts_set **set,
                         struct hrt_experts_shape *shape) {
    *set = calloc((size_t)program->sets + 1, sizeof **set);
    if (!*set) return false;
    for (int i = 0; i < program->sets; i++) (*set)[i] = moving_set(program, i);
    *shape = (struct hrt_experts_shape){
        .sets = program->sets,
        .set = *set,
        .tokens = program->batch * program->positions,
        .sequences = program->batch,
        .nodes = program->owned ? program->nodes : 0,
        .element = (size_t)hrt_params_element_bytes(program->precision),
    };
    return true;
}

bool hrt_train_ranks_join(struct hrt_state *state, struct hrt_error *error) {
    const struct hrt_program *program = state->program;
    struct hrt_experts_set *set;
    struct hrt_experts_shape shape;
    if (!program->world) return true;
    if (!hrt_train_dense_create(&state->dense, state, error)) return false;
    *(struct hrt_train_dense **)((char *)state->model + program->dense_offset) = state->dense;
    if (!program->sets) return true;
    for (int i = 0; program->owned && i < program->sets; i++) point_at_chunks(state, i);
    if (!moving_shape(program, &set, &shape)) return hrt_fail(error, "out of memory");
    shape.device = &state->device;
    const bool created = hrt_experts_create(&state->experts, &shape, state->comm, error);
    free(set);
    if (!created) return false;
    *(struct hrt_experts **)((char *)state->model + program->experts_offset) = state->experts;
    if (!program->movement) return true;
    if (!hrt_experts_fssdp_create(&state->fssdp, state, error)) return false;
    *(struct hrt_fssdp **)((char *)state->model + program->fssdp_offset) = state->fssdp;
    return true;
}

struct hrt_experts_bytes hrt_train_ranks_moving_bytes(const struct hrt_program *program) {
    struct hrt_experts_set *set;
    struct hrt_experts_shape shape;
    if (!program->world || !program->sets || !moving_shape(program, &set, &shape))
        return (struct hrt_experts_bytes){0};
    const struct hrt_experts_bytes bytes = hrt_experts_bytes(&shape, (int)program->world);
    free(set);
    return bytes;
}

// Measured (Debian 12, Open MPI 4.1): 6 MiB alone; with MPI 14 MiB after MPI_Init, 60 KiB for each
// rank it talks to, and up to 16 MiB of gradients and chunks. Over TCP rows are copied twice before
// they are where they belong: those of a wave on their way out, and those of the next that have come early.
size_t hrt_train_ranks_process_bytes(const struct hrt_program *program) {
    enum { MIB = 1 << 20 };
    if (!program->world) return 12 * (size_t)MIB;
    int64_t wave = 0; // Elements.
    for (int i = 0; i < program->sets; i++) {
        const int64_t elements = program->set[i].wave_rows * program->set[i].width;
        wave = elements > wave ? elements : wave;
    }
    return 40 * (size_t)MIB + (size_t)program->world * 64 * 1024 +
           2 * (size_t)(wave * hrt_params_element_bytes(program->precision));
}

void hrt_train_ranks_sum_gradients(const struct hrt_state *state) {
    if (state->dense) hrt_train_dense_finish(state->dense);
}

bool hrt_train_ranks_agree(struct hrt_comm *comm, bool sound, struct hrt_error *error) {
    if (comm->size == 1) return sound;
    int64_t *code = calloc((size_t)comm->size, sizeof *code);
    if (!code) return hrt_fail(error, "out of memory");
    if (!sound) code[comm->rank] = error->code;
    hrt_net_comm_all_reduce(comm, code, comm->size, HRT_INT64);
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
