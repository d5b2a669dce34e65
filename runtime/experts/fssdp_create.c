// Memory of what moves experts: taken once, replicas' slots committed where they are touched.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/bf16.h"
#include "runtime/experts/experts.h"
#include "runtime/experts/moves.h"
#include "runtime/params/placement.h"
#include "runtime/params/tensor.h"
#include "runtime/plan/plan.h"

// ---- sizes

// Elements of a chunk that GEMMs read as they are, without a rounded copy. The chunk begins with them.
static int64_t plain_elements(const struct hrt_program *program, int set) {
    int64_t elements = 0;
    for (int i = 0; i < program->params; i++) {
        const struct hrt_param *param = &program->param[i];
        if (param->set == set && !param->rounded) elements += param->elements;
    }
    return elements;
}

// The most chunks of one layer that a rank owns when the program starts; 0: its share.
static int32_t most_owned(const struct hrt_program *program, const struct hrt_set *set) {
    int32_t most = 0;
    for (int64_t layer = 0; set->owner && layer < set->layers; layer++) {
        const int32_t *owner = set->owner + layer * set->experts;
        for (int32_t rank = 0; rank < program->world; rank++) {
            int32_t owned = 0;
            for (int64_t e = 0; e < set->experts; e++) owned += owner[e] == rank;
            if (owned > most) most = owned;
        }
    }
    return most;
}

static struct hpl_slots slots_of(const struct hrt_program *program, const struct hpl_policy *policy,
                                 int index) {
    const struct hrt_set *set = &program->set[index];
    const int64_t element = hrt_params_element_bytes(program->precision);
    const int64_t rounded = set->chunk_elements * (int64_t)sizeof(hk_bf16);
    const int64_t bytes = set->chunk_elements * element;
    int64_t first;
    return hpl_slots_of(&(struct hpl_slots_request){
        .policy = policy,
        .experts = (int32_t)set->experts,
        .devices = (int32_t)program->world,
        .layers = set->layers,
        .owned = most_owned(program, set),
        .slots = program->movement->slots,
        .rematerialize = program->movement->rematerialize,
        .for_step = program->movement->lifetime == HPL_LIFETIME_STEP,
        .param_bytes =
            set->chunk_rounded ? rounded + element * plain_elements(program, index) : bytes,
        .grad_bytes = hrt_params_trained(program, index, &first) * element,
    });
}

size_t hrt_experts_fssdp_bytes(const struct hrt_program *program) {
    size_t bytes = 0;
    if (!program->movement) return 0;
    const struct hpl_policy *policy = hpl_policy_find(program->movement->policy);
    for (int i = 0; policy && i < program->sets; i++) {
        const struct hpl_slots slots = slots_of(program, policy, i);
        bytes += (size_t)(slots.params + slots.grads + slots.staging);
    }
    return bytes;
}

int64_t hrt_experts_fssdp_holders(const struct hrt_program *program, int set) {
    const struct hpl_policy *policy =
        program->movement ? hpl_policy_find(program->movement->policy) : NULL;
    return policy ? slots_of(program, policy, set).holders : program->set[set].experts;
}

// Cuts `bytes` from `begin` on into `count` pieces that begin at whole cache lines.
static void cut(struct hrt_piece *piece, int count, enum hrt_chunk_kind kind, size_t begin,
                size_t bytes) {
    const size_t lines = (bytes + 63) / 64;
    const size_t each = (lines + (size_t)count - 1) / (size_t)count * 64;
    for (int i = 0; i < count; i++) {
        const size_t at = (size_t)i * each < bytes ? (size_t)i * each : bytes;
        const size_t left = bytes - at;
        piece[i] = (struct hrt_piece){kind, begin + at, left < each ? left : each};
    }
}

// ---- creation

// Reserves slots of a kind for `layers` layers. Untouched slots take no memory.
static bool reserve(const struct hrt_fssdp *fssdp, struct hrt_moving_set *set,
                    enum hrt_chunk_kind kind, int64_t layers) {
    struct hrt_device *device = &fssdp->state->device;
    const int index = (int)(set - fssdp->set);
    int64_t elements = set->set->chunk_elements, first;
    if (kind == HRT_CHUNK_PARAMS && set->set->chunk_rounded)
        elements = plain_elements(fssdp->program, index);
    if (kind == HRT_CHUNK_GRADS) elements = hrt_params_trained(fssdp->program, index, &first);
    const int64_t bytes = elements * hrt_experts_chunk_element(fssdp->program, kind);
    set->stride[kind] = ((size_t)bytes + 63) / 64 * 64;
    set->pool_bytes[kind] = (size_t)(set->slots.replicas * layers) * set->stride[kind];
    if (set->pool_bytes[kind] == 0) return true;
    set->pool[kind] = device->backend->take(device, HRT_OF_DEVICE, set->pool_bytes[kind], true);
    return set->pool[kind];
}

static bool reserve_slots(const struct hrt_fssdp *fssdp, struct hrt_moving_set *set) {
    const int64_t layers = fssdp->movement->rematerialize ? 1 : set->set->layers;
    return reserve(fssdp, set, HRT_CHUNK_PARAMS, layers) &&
           (!set->set->chunk_rounded || reserve(fssdp, set, HRT_CHUNK_ROUNDED, layers)) &&
           reserve(fssdp, set, HRT_CHUNK_GRADS, set->slots.grad_layers);
}

static bool take_plan(struct hpl_plan *plan, int64_t experts, int64_t capacity) {
    *plan = (struct hpl_plan){
        .experts = (int32_t)experts,
        .capacity = (int32_t)capacity,
        .first = calloc((size_t)experts + 1, sizeof *plan->first),
        .holder = calloc((size_t)capacity, sizeof *plan->holder),
    };
    return plan->first && plan->holder;
}

static bool take_schedule(struct hpl_schedule *schedule, int64_t capacity) {
    schedule->capacity = (int32_t)capacity;
    schedule->transfer = malloc((size_t)capacity * sizeof *schedule->transfer);
    return schedule->transfer;
}

static void drop_plan(struct hpl_plan *plan) {
    free(plan->first);
    free(plan->holder);
}

// Holders of a plan that has the owners besides those that compute.
static int64_t most_holders(const struct hrt_moving_set *set, int devices) {
    const int64_t experts = set->set->experts, all = experts * devices;
    const int64_t holders = set->slots.holders + experts;
    return holders < all ? holders : all;
}

static bool create_layers(struct hrt_fssdp *fssdp, struct hrt_moving_set *set, int index) {
    const int64_t experts = set->set->experts, layers = set->set->layers;
    const int64_t cells = fssdp->comm->size * experts;
    const int64_t holders = most_holders(set, fssdp->comm->size);
    set->layer = calloc((size_t)layers, sizeof *set->layer);
    bool created = set->layer;
    for (int64_t i = 0; created && i < layers; i++) {
        struct hrt_moving_layer *layer = &set->layer[i];
        layer->slot = malloc((size_t)experts * sizeof *layer->slot);
        layer->window = calloc((size_t)(fssdp->movement->window * cells), sizeof *layer->window);
        created = layer->slot && layer->window && take_plan(&layer->plan, experts, holders) &&
                  take_schedule(&layer->gather, holders * set->slots.segments) &&
                  take_plan(&layer->placed, experts, holders) &&
                  take_plan(&layer->ahead, experts, holders);
        if (!created) break;
        memset(layer->slot, -1, (size_t)experts * sizeof *layer->slot);
        const int32_t *owner = hrt_experts_layer_owners(fssdp, index, i);
        if (hpl_plan_of_owners(&layer->plan, (int32_t)experts, owner) != HPL_OK ||
            hpl_plan_copy(&layer->placed, &layer->plan) != HPL_OK)
            return false;
        hrt_experts_place(fssdp->state->experts, index, i, &layer->placed);
    }
    return created;
}

// Transfers carry the parameters of a chunk as GEMMs read them: the rounded copies where there are some,
// and the parameters that have none.
static bool create_pieces(struct hrt_fssdp *fssdp, struct hrt_moving_set *set, int index) {
    const struct hrt_program *program = fssdp->program;
    const int segments = set->slots.segments;
    const enum hrt_chunk_kind kind = set->set->chunk_rounded ? HRT_CHUNK_ROUNDED : HRT_CHUNK_PARAMS;
    const size_t most = (size_t)(segments + program->params);
    const size_t element = (size_t)hrt_params_element_bytes(program->precision);
    const size_t elements = (size_t)set->set->chunk_elements;
    int64_t first;
    const size_t trained = (size_t)hrt_params_trained(program, index, &first);
    set->grads_at = (size_t)first * element;
    set->param_pieces = segments;
    set->param_piece = malloc(most * sizeof *set->param_piece);
    set->grad_piece = malloc((size_t)segments * sizeof *set->grad_piece);
    if (!set->param_piece || !set->grad_piece) return false;
    cut(set->param_piece, segments, kind, 0,
        elements * (size_t)hrt_experts_chunk_element(program, kind));
    cut(set->grad_piece, segments, HRT_CHUNK_GRADS, set->grads_at, trained * element);
    for (int i = 0; kind == HRT_CHUNK_ROUNDED && i < program->params; i++) {
        const struct hrt_param *param = &program->param[i];
        if (param->set != index || param->rounded) continue;
        set->param_piece[set->param_pieces++] = (struct hrt_piece){
            HRT_CHUNK_PARAMS, (size_t)param->offset * element, (size_t)param->elements * element};
    }
    return true;
}

static bool create_moves(struct hrt_fssdp *fssdp, struct hrt_moving_set *set, int index) {
    for (int kind = 0; kind < HRT_MOVES; kind++) {
        if (!hrt_experts_move_create(&set->move[kind], fssdp, index, (enum hrt_move_kind)kind))
            return false;
    }
    if (set->slots.staging == 0) return true;
    struct hrt_move *reduce = &set->move[HRT_MOVE_REDUCE];
    struct hrt_device *device = &fssdp->state->device;
    reduce->staged = (size_t)set->slots.staging / HPL_STAGED;
    reduce->staging =
        device->backend->take(device, HRT_OF_DEVICE, HPL_STAGED * reduce->staged, true);
    return reduce->staging;
}

static bool create_set(struct hrt_fssdp *fssdp, int index) {
    struct hrt_moving_set *set = &fssdp->set[index];
    set->set = &fssdp->program->set[index];
    set->slots = slots_of(fssdp->program, fssdp->policy, index);
    return create_pieces(fssdp, set, index) && create_moves(fssdp, set, index) &&
           create_layers(fssdp, set, index) && reserve_slots(fssdp, set) &&
           hrt_experts_episode_create(fssdp, index, most_holders(set, fssdp->comm->size));
}

static bool create_topology(struct hrt_fssdp *fssdp) {
    const struct hrt_comm *comm = fssdp->comm;
    fssdp->node_first = calloc((size_t)comm->nodes + 1, sizeof *fssdp->node_first);
    fssdp->speed = malloc((size_t)comm->size * sizeof *fssdp->speed);
    if (!fssdp->node_first || !fssdp->speed) return false;
    for (int r = 0; r < comm->size; r++) {
        fssdp->node_first[comm->node_of[r] + 1] = r + 1;
        fssdp->speed[r] = 1;
    }
    fssdp->topology = (struct hpl_topology){
        .devices = comm->size,
        .nodes = comm->nodes,
        .first = fssdp->node_first,
        .node = comm->node_of,
        .speed = fssdp->speed,
    };
    return true;
}

// Scratch as large as the largest set needs it.
static bool create_scratch(struct hrt_fssdp *fssdp) {
    const size_t ranks = (size_t)fssdp->comm->size;
    int64_t experts = 1, holders = 1, transfers = 1, chunks = fssdp->comm->size;
    for (int i = 0; i < fssdp->program->sets; i++) {
        const struct hrt_moving_set *set = &fssdp->set[i];
        const int64_t here = most_holders(set, fssdp->comm->size);
        const int64_t all = set->set->layers * set->set->experts;
        if (set->set->experts > experts) experts = set->set->experts;
        if (here > holders) holders = here;
        if (here * set->slots.segments > transfers) transfers = here * set->slots.segments;
        if (all > chunks) chunks = all;
    }
    fssdp->order = malloc((size_t)chunks * sizeof *fssdp->order);
    fssdp->cursor = malloc(ranks * sizeof *fssdp->cursor);
    fssdp->next_owner = malloc((size_t)chunks * sizeof *fssdp->next_owner);
    return fssdp->order && fssdp->cursor && fssdp->next_owner &&
           take_schedule(&fssdp->schedule, transfers) &&
           take_plan(&fssdp->scratch, experts, holders);
}

static bool create_all(struct hrt_fssdp *fssdp) {
    fssdp->set = calloc((size_t)fssdp->program->sets + 1, sizeof *fssdp->set);
    if (!fssdp->set || !create_topology(fssdp)) return false;
    for (int i = 0; i < fssdp->program->sets; i++) {
        if (!create_set(fssdp, i)) return false;
    }
    return create_scratch(fssdp) && hrt_experts_agreement_create(fssdp) &&
           (!fssdp->movement->known || hrt_experts_known_create(fssdp));
}

bool hrt_experts_fssdp_create(struct hrt_fssdp **created, struct hrt_state *state,
                              struct hrt_error *error) {
    const struct hpl_movement *movement = state->program->movement;
    const struct hpl_policy *policy = hpl_policy_find(movement->policy);
    *created = NULL;
    if (!policy) return hrt_fail(error, "there is no policy '%s'", movement->policy);
    struct hrt_fssdp *fssdp = calloc(1, sizeof *fssdp);
    if (!fssdp) return hrt_fail(error, "out of memory");
    *fssdp = (struct hrt_fssdp){
        .state = state,
        .program = state->program,
        .movement = movement,
        .policy = policy,
        .comm = state->comm,
    };
    if (!create_all(fssdp)) {
        hrt_experts_fssdp_destroy(fssdp);
        return hrt_fail(error, "not enough memory for replicas of experts");
    }
    for (int i = 0; i < state->program->sets; i++) {
        if (hpl_episode_try(&fssdp->set[i].episode) == HPL_OK) continue;
        hrt_fail(error,
                 "'%s' cannot place the %" PRId64 " experts of '%s' on %d ranks with %" PRId64
                 " slots each (parallel.placement.memory)",
                 policy->name, fssdp->set[i].set->experts, fssdp->set[i].set->name,
                 fssdp->comm->size, movement->slots);
        hrt_experts_fssdp_destroy(fssdp);
        return false;
    }
    hrt_experts_divide(state->experts, hrt_experts_quota, fssdp);
    *created = fssdp;
    return true;
}

static void destroy_set(struct hrt_moving_set *set, struct hrt_device *device) {
    for (int64_t i = 0; set->layer && i < set->set->layers; i++) {
        drop_plan(&set->layer[i].plan);
        free(set->layer[i].gather.transfer);
        drop_plan(&set->layer[i].placed);
        drop_plan(&set->layer[i].ahead);
        free(set->layer[i].slot);
        free(set->layer[i].window);
        free(set->layer[i].known);
    }
    for (int kind = 0; kind < HRT_CHUNK_KINDS; kind++) {
        device->backend->give(device, HRT_OF_DEVICE, set->pool[kind], set->pool_bytes[kind]);
    }
    for (int kind = 0; kind < HRT_MOVES; kind++) hrt_experts_move_destroy(&set->move[kind], device);
    free(set->layer);
    free(set->memory);
    free(set->param_piece);
    free(set->grad_piece);
}

void hrt_experts_fssdp_destroy(struct hrt_fssdp *fssdp) {
    if (!fssdp) return;
    hrt_experts_moves_finish(fssdp); // The last forward may still pass parameters on.
    for (int i = 0; fssdp->set && i < fssdp->program->sets; i++) {
        if (fssdp->set[i].set) destroy_set(&fssdp->set[i], &fssdp->state->device);
    }
    drop_plan(&fssdp->scratch);
    hrt_experts_agreement_destroy(fssdp);
    free(fssdp->known);
    free(fssdp->set);
    free(fssdp->node_first);
    free(fssdp->speed);
    free(fssdp->order);
    free(fssdp->cursor);
    free(fssdp->next_owner);
    free(fssdp->schedule.transfer);
    free(fssdp);
}
