// dense = shard: units of parameters come and go, and their gradients are summed in every iteration.
//
// A rank keeps its parts alone. Each parameter has slots, where all of it comes: two where it has layers, which these
// take in turn. Pass verify-dense has proven that two are enough, and place-buffers has given the same memory to those
// that are never in use at once. A layer always has the same slot, so emitted code finds it at a fixed place.
// Gradients have slots of their own. Their sum over the ranks, in the order of ranks, is added to this rank's part,
// and the slot is cleared.
//
// With HECATE_RELEASED=nan a slot that is forgotten is filled with NaN, so that a read before its unit has come, or
// behind its release, shows in the losses.
#include <stdlib.h>
#include <string.h>

#include "runtime/base/error.h"
#include "runtime/params/rounded.h"
#include "runtime/params/state.h"
#include "runtime/params/tensor.h"
#include "runtime/plan/held.h"
#include "runtime/train/dense_jobs.h"

// One layer of a unit, or of a bucket.
struct part {
    struct hrt_train_dense_job job;
    struct hrt_mark mark;
    const int64_t *queue; // [tensors]
    int64_t tensors;
};

// All units, or all buckets.
struct parts {
    const struct hrt_bucket *list;
    int64_t *first; // [count] The part of layer 0.
    struct part *part;
    int64_t *queue;
};

struct hrt_train_dense_units {
    struct hrt_state *state;
    struct parts unit, bucket;
    struct part *summed; // The sum that is under way; NULL: none.
    char *slots;
    bool spoils; // HECATE_RELEASED=nan.
};

// Tensors of one layer of a unit or bucket.
static int64_t tensors_of(const struct hrt_program *program, const struct hrt_bucket *list) {
    int64_t tensors = list->params;
    for (int i = 0; i < list->sets; i++) tensors += program->set[list->set[i]].experts;
    return tensors;
}

static bool list_parts(const struct hrt_train_dense *dense, struct parts *parts, int count,
                       const struct hrt_bucket *list) {
    int64_t all = 0, tensors = 0, queued = 0;
    for (int i = 0; i < count; i++) {
        all += list[i].layers;
        tensors += list[i].layers * tensors_of(dense->program, &list[i]);
    }
    parts->list = list;
    parts->first = calloc((size_t)count + 1, sizeof *parts->first);
    parts->part = calloc((size_t)all + 1, sizeof *parts->part);
    parts->queue = calloc((size_t)tensors + 1, sizeof *parts->queue);
    if (!parts->first || !parts->part || !parts->queue) return false;
    for (int i = 0, next = 0; i < count; i++) {
        parts->first[i] = next;
        for (int64_t layer = 0; layer < list[i].layers; layer++, next++) {
            struct part *part = &parts->part[next];
            part->queue = parts->queue + queued;
            part->tensors = tensors_of(dense->program, &list[i]);
            for (int k = 0; k < list[i].params; k++)
                parts->queue[queued++] = dense->param_tensor[list[i].param[k]] + layer;
            for (int k = 0; k < list[i].sets; k++) {
                const int64_t experts = dense->program->set[list[i].set[k]].experts;
                for (int64_t e = 0; e < experts; e++)
                    parts->queue[queued++] =
                        dense->set_tensor[list[i].set[k]] + layer * experts + e;
            }
        }
    }
    return true;
}

// ---- slots

// A parameter outside of sets, or a set that every rank has: each of their layers comes to a slot.
struct shared {
    int64_t layers;
    int64_t elements, tensors; // A layer has so many elements, in tensors of equal size.
    int64_t first;             // Number of the first tensor.
    size_t pointers[HRT_DENSE_SLOTS];
    const size_t (*slot)[2];
};

static size_t element_of(const struct hrt_program *program, int kind) {
    return kind == HRT_DENSE_COPIES ? sizeof(hk_bf16)
                                    : (size_t)hrt_params_element_bytes(program->precision);
}

// Number `index` of parameters, and then of sets. False: it has no slots.
static bool shared_at(const struct hrt_program *program, int index, struct shared *shared) {
    if (program->dense != HRT_DENSE_SHARD) return false;
    if (index >= program->params) {
        const struct hrt_set *set = &program->set[index - program->params];
        *shared = (struct shared){.elements = set->experts * set->chunk_elements,
                                  .layers = set->layers,
                                  .tensors = set->experts,
                                  .pointers = {set->chunks, set->chunk_grads, set->chunk_rounded},
                                  .slot = set->slot};
        return !program->owned;
    }
    const struct hrt_param *param = &program->param[index];
    *shared = (struct shared){
        .elements = param->elements,
        .layers = param->layers,
        .tensors = 1,
        .pointers = {param->pointers, param->grad_pointers, param->rounded_pointers},
        .slot = param->slot};
    return param->set < 0 && hrt_params_is_cut(program, param, HRT_PARAMETERS);
}

// Gives the tensors of `shared` slots, and tells the model.
static void place(const struct hrt_train_dense *dense, const struct shared *shared, int kind) {
    char **pointer = (char **)((char *)dense->units->state->model + shared->pointers[kind]);
    const size_t element = element_of(dense->program, kind);
    const size_t each = (size_t)(shared->elements / shared->tensors) * element;
    const bool behind = kind == HRT_DENSE_COPIES && shared->pointers[HRT_DENSE_PARAMETERS];
    const int64_t before = behind ? shared->elements * (int64_t)dense->element : 0;
    if (!shared->pointers[kind]) return;
    for (int64_t i = 0; i < shared->layers * shared->tensors; i++) {
        const size_t slot = shared->slot[kind == HRT_DENSE_GRADIENTS][i / shared->tensors % 2];
        pointer[i] = dense->units->slots + slot + hpl_slot_bytes(before) +
                     (size_t)(i % shared->tensors) * each;
        dense->tensor[shared->first + i].slot[kind] = pointer[i];
    }
}

static void spoil(const struct hrt_train_dense *dense, int64_t index) {
    const struct hrt_train_dense_tensor *tensor = &dense->tensor[index];
    for (int kind = 0; kind < HRT_DENSE_SLOTS; kind++) {
        if (kind != HRT_DENSE_GRADIENTS && tensor->slot[kind])
            hrt_device_spoil(dense->device, tensor->slot[kind],
                             (size_t)tensor->count * element_of(dense->program, kind));
    }
}

static void place_all(struct hrt_train_dense *dense) {
    const struct hrt_program *program = dense->program;
    struct shared shared;
    for (int i = 0; i < program->params + program->sets; i++) {
        if (!shared_at(program, i, &shared)) continue;
        shared.first =
            i < program->params ? dense->param_tensor[i] : dense->set_tensor[i - program->params];
        for (int kind = 0; kind < HRT_DENSE_SLOTS; kind++) place(dense, &shared, kind);
    }
}

static bool open_released(bool *spoils, struct hrt_error *error) {
    const char *asked = getenv("HECATE_RELEASED");
    *spoils = asked && *asked;
    return !*spoils || strcmp(asked, "nan") == 0 ||
           hrt_fail_usage(error, "HECATE_RELEASED=%s: it can only be \"nan\"", asked);
}

bool hrt_train_dense_units_create(struct hrt_train_dense *dense, struct hrt_state *state,
                                  struct hrt_error *error) {
    const struct hrt_program *program = dense->program;
    struct hrt_train_dense_units *units = dense->units = calloc(1, sizeof *units);
    if (!units) return hrt_fail(error, "out of memory");
    units->state = state;
    if (!open_released(&units->spoils, error)) return false;
    units->slots =
        dense->device->backend->take(dense->device, HRT_OF_DEVICE, program->unit_bytes, false);
    if (!units->slots || !list_parts(dense, &units->unit, program->units, program->unit) ||
        !list_parts(dense, &units->bucket, program->buckets, program->bucket))
        return hrt_fail(error, "out of memory");
    place_all(dense);
    for (int64_t i = 0; units->spoils && i < dense->tensors; i++) spoil(dense, i);
    return true;
}

static void free_parts(struct parts *parts) {
    free(parts->first);
    free(parts->part);
    free(parts->queue);
}

void hrt_train_dense_units_destroy(struct hrt_train_dense *dense) {
    struct hrt_device *device = dense->device;
    if (!dense->units) return;
    if (dense->units->unit.first && dense->units->bucket.first) hrt_train_dense_complete(dense);
    free_parts(&dense->units->unit);
    free_parts(&dense->units->bucket);
    if (dense->units->slots)
        device->backend->give(device, HRT_OF_DEVICE, dense->units->slots,
                              dense->program->unit_bytes);
    free(dense->units);
    dense->units = NULL;
}

// ---- parameters

// NULL: there is no such layer.
static struct part *find(const struct hrt_train_dense *dense, int unit, int64_t layer) {
    const struct hrt_train_dense_units *units = dense->units;
    if (layer < 0 || layer >= units->unit.list[unit].layers) return NULL;
    return &units->unit.part[units->unit.first[unit] + layer];
}

void hrt_train_dense_bring(struct hrt_train_dense *dense, int unit, int64_t layer) {
    struct part *part = find(dense, unit, layer);
    if (part)
        part->mark = hrt_train_dense_submit(dense, &part->job, part->queue, part->tensors,
                                            dense->params, NULL, false, true);
}

// Makes the copy that GEMMs read, of one tensor of a parameter.
static void round_tensor(const struct hrt_train_dense *dense, const struct hrt_param *param,
                         const float *from, hk_bf16 *to) {
    struct hrt_device *device = dense->device;
    if (!param->rounded || !from) return;
    if (hrt_device_is_apart(device))
        device->backend->round(device, to, from, param->elements);
    else
        hrt_params_round_tensor(param, from, to);
}

static void round_chunks(const struct hrt_train_dense *dense, int index, int64_t layer) {
    const struct hrt_program *program = dense->program;
    const int64_t experts = program->set[index].experts;
    const struct hrt_train_dense_tensor *chunk =
        &dense->tensor[dense->set_tensor[index] + layer * experts];
    for (int64_t e = 0; program->set[index].chunk_rounded && e < experts; e++) {
        for (int k = 0; k < program->params; k++) {
            const struct hrt_param *param = &program->param[k];
            if (param->set == index)
                round_tensor(dense, param,
                             (const float *)chunk[e].slot[HRT_DENSE_PARAMETERS] + param->offset,
                             (hk_bf16 *)chunk[e].slot[HRT_DENSE_COPIES] + param->offset);
        }
    }
}

void hrt_train_dense_await(struct hrt_train_dense *dense, int unit, int64_t layer) {
    const struct hrt_bucket *list = &dense->program->unit[unit];
    const struct part *part = find(dense, unit, layer);
    if (!part) return;
    hrt_net_lane_join(dense->comm, part->mark, "parameters");
    for (int i = 0; i < list->params; i++) {
        const struct hrt_train_dense_tensor *tensor =
            &dense->tensor[dense->param_tensor[list->param[i]] + layer];
        round_tensor(dense, &dense->program->param[list->param[i]],
                     (const float *)tensor->slot[HRT_DENSE_PARAMETERS],
                     (hk_bf16 *)tensor->slot[HRT_DENSE_COPIES]);
    }
    for (int i = 0; i < list->sets; i++) round_chunks(dense, list->set[i], layer);
}

void hrt_train_dense_release(struct hrt_train_dense *dense, int unit, int64_t layer) {
    const struct part *part = find(dense, unit, layer);
    for (int64_t i = 0; dense->units->spoils && part && i < part->tensors; i++)
        spoil(dense, part->queue[i]);
}

// ---- gradients

void hrt_train_dense_complete(struct hrt_train_dense *dense) {
    if (!dense->units || !dense->units->summed) return;
    const struct part *part = dense->units->summed;
    dense->units->summed = NULL;
    hrt_net_lane_join(dense->comm, part->mark, "the sum of gradients");
    for (int64_t i = 0; i < part->tensors; i++) {
        const struct hrt_train_dense_tensor *tensor = &dense->tensor[part->queue[i]];
        hrt_device_clear(dense->device, tensor->slot[HRT_DENSE_GRADIENTS],
                         (size_t)tensor->count * dense->element);
    }
}

void hrt_train_dense_reduce(struct hrt_train_dense *dense, int bucket, int64_t layer) {
    struct parts *parts = &dense->units->bucket;
    struct part *part = &parts->part[parts->first[bucket] + layer];
    hrt_train_dense_complete(dense);
    part->mark = hrt_train_dense_submit(dense, &part->job, part->queue, part->tensors, dense->grads,
                                        NULL, true, false);
    dense->units->summed = part;
}
