#include "tests/runtime/support/moving.h"

#include <stdio.h>
#include <stdlib.h>

#include "runtime/params/placement.h"
#include "runtime/train/create.h"
#include "runtime/train/ranks.h"

struct model {
    struct hrt_experts *experts;
    struct hrt_fssdp *fssdp;
    float *tables[]; // Chunks, gradients, rounded copies: [layers][experts] each.
};

static void bind(void *model, void *params, void *grads, void *arena) {
    (void)model, (void)params, (void)grads, (void)arena;
}

static void bind_rounded(void *model, const void *rounded) {
    (void)model, (void)rounded;
}

static void describe(struct moving *moving, struct moving_sizes sizes) {
    const int64_t chunks = sizes.layers * sizes.experts;
    const size_t table = (size_t)chunks * sizeof(float *);
    moving->set = (struct hrt_set){
        .name = "sparse",
        .experts = sizes.experts,
        .topk = sizes.topk,
        .layers = sizes.layers,
        .chunk_elements = sizes.chunk,
        .width = sizes.width,
        .wave_rows = sizes.tokens * sizes.topk,
        .chunks = sizeof(struct model),
        .chunk_grads = sizeof(struct model) + table,
        .chunk_rounded = sizes.rounded ? sizeof(struct model) + 2 * table : 0,
    };
    for (int i = 0; i < 2; i++) {
        const int64_t elements = i ? MOVING_PLAIN : sizes.chunk - MOVING_PLAIN;
        moving->param[i] = (struct hrt_param){
            .symbol = i ? "b" : "w",
            .path = i ? "{}.experts.{e}.b" : "{}.experts.{e}.w",
            .rank = 1,
            .shape = {elements},
            .layers = sizes.layers,
            .index_stride = 1,
            .trainable = true,
            .rounded = sizes.rounded && i == 0,
            .rows = 1,
            .columns = elements,
            .elements = elements,
            .offset = i ? 0 : MOVING_PLAIN,
        };
    }
    moving->program = (struct hrt_program){
        .name = "moving",
        .version = "0",
        .positions = sizes.tokens,
        .batch = 1,
        .param_elements = chunks * sizes.chunk,
        .params = 2,
        .sets = 1,
        .param = moving->param,
        .set = &moving->set,
        .world = moving->comm->size,
        .owned = true,
        .experts_offset = offsetof(struct model, experts),
        .movement = &moving->movement,
        .fssdp_offset = offsetof(struct model, fssdp),
        .model_bytes = sizeof(struct model) + 3 * table,
        .bind = bind,
        .bind_rounded = sizes.rounded ? bind_rounded : NULL,
    };
}

void moving_open(struct moving *moving, struct hrt_comm *comm, const struct hpl_movement *movement,
                 struct moving_sizes sizes) {
    struct hrt_error error = {0};
    *moving = (struct moving){.comm = comm, .movement = *movement};
    describe(moving, sizes);
    if (hrt_params_placement_create(&moving->placement, &moving->program, comm->rank, &error) &&
        hrt_train_state_create(&moving->state, &moving->placement, comm, HRT_BY_ADAMW, &error) &&
        hrt_train_ranks_join(&moving->state, &error))
        return;
    fprintf(stderr, "%s\n", error.text);
    hrt_net_comm_abort(comm, 1);
}

void moving_close(struct moving *moving) {
    hrt_train_state_destroy(&moving->state);
    hrt_params_placement_destroy(&moving->placement);
}

static float **table(const struct moving *moving, size_t offset, int64_t layer) {
    return (float **)((char *)moving->state.model + offset) + layer * moving->set.experts;
}

float *moving_chunk(const struct moving *moving, int64_t layer, int64_t n) {
    return table(moving, moving->set.chunks, layer)[n];
}

float *moving_grad(const struct moving *moving, int64_t layer, int64_t n) {
    return table(moving, moving->set.chunk_grads, layer)[n];
}

uint16_t *moving_rounded(const struct moving *moving, int64_t layer, int64_t n) {
    return (uint16_t *)table(moving, moving->set.chunk_rounded, layer)[n];
}

static float *place(const struct moving *moving, void *buffer, int64_t layer, int64_t expert) {
    return (float *)buffer + (layer * moving->set.experts + expert) * moving->set.chunk_elements;
}

float *moving_own_chunk(const struct moving *moving, int64_t layer, int64_t expert) {
    return place(moving, moving->state.values[HRT_PARAMETERS], layer, expert);
}

float *moving_own_grad(const struct moving *moving, int64_t layer, int64_t expert) {
    return place(moving, moving->state.values[HRT_GRADIENTS], layer, expert);
}

uint32_t moving_draw(uint64_t *sequence, uint32_t limit) {
    *sequence = *sequence * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((*sequence >> 33) % limit);
}
