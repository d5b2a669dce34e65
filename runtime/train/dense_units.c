// dense = shard: units of parameters come and go, and their gradients are summed in every iteration.
//
// All ranks have the same places, and a rank keeps its parts. A unit's other parts come into their places and are
// given back to the system, page by page. A gradient is added to this rank's part where that already has the sum of
// the iterations before: so a sum is of ranks in their order, this one's with what came before.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/params/rounded.h"
#include "runtime/params/state.h"
#include "runtime/params/tensor.h"
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
};

static bool list_parts(const struct hrt_train_dense *dense, struct parts *parts, int count,
                       const struct hrt_bucket *list) {
    int64_t all = 0, tensors = 0, queued = 0;
    for (int i = 0; i < count; i++) {
        all += list[i].layers;
        tensors += list[i].layers * (list[i].params + list[i].sets);
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
            part->tensors = list[i].params + list[i].sets;
            for (int k = 0; k < list[i].params; k++)
                parts->queue[queued++] = dense->param_tensor[list[i].param[k]] + layer;
            for (int k = 0; k < list[i].sets; k++)
                parts->queue[queued++] = dense->set_tensor[list[i].set[k]] + layer;
        }
    }
    return true;
}

bool hrt_train_dense_units_create(struct hrt_train_dense *dense, struct hrt_state *state) {
    const struct hrt_program *program = dense->program;
    struct hrt_train_dense_units *units = dense->units = calloc(1, sizeof *units);
    if (!units) return false;
    units->state = state;
    return list_parts(dense, &units->unit, program->units, program->unit) &&
           list_parts(dense, &units->bucket, program->buckets, program->bucket);
}

static void free_parts(struct parts *parts) {
    free(parts->first);
    free(parts->part);
    free(parts->queue);
}

void hrt_train_dense_units_destroy(struct hrt_train_dense *dense) {
    if (!dense->units) return;
    if (dense->units->unit.first && dense->units->bucket.first) hrt_train_dense_complete(dense);
    free_parts(&dense->units->unit);
    free_parts(&dense->units->bucket);
    free(dense->units);
    dense->units = NULL;
}

// Bytes of one layer of a unit or bucket.
static int64_t bytes_of(const struct hrt_program *program, const struct hrt_bucket *list,
                        int64_t element, bool copies) {
    int64_t bytes = 0;
    for (int i = 0; i < list->params; i++) {
        const struct hrt_param *param = &program->param[list->param[i]];
        const bool copy = copies && param->rounded;
        bytes += param->elements * (element + (copy ? (int64_t)sizeof(hk_bf16) : 0));
    }
    for (int i = 0; i < list->sets; i++) {
        const struct hrt_set *set = &program->set[list->set[i]];
        const bool copy = copies && program->bind_rounded;
        bytes +=
            set->experts * set->chunk_elements * (element + (copy ? (int64_t)sizeof(hk_bf16) : 0));
    }
    return bytes;
}

// Two layers of the widest one, and two of those without layers.
static int64_t most_bytes(const struct hrt_program *program, const struct hrt_bucket *list,
                          int count, bool copies) {
    const int64_t element = hrt_params_element_bytes(program->precision);
    int64_t layer = 0, first = 0, second = 0;
    for (int i = 0; i < count; i++) {
        const int64_t bytes = bytes_of(program, &list[i], element, copies);
        if (list[i].layers > 1) {
            layer = bytes > layer ? bytes : layer;
        } else if (bytes > first) {
            second = first, first = bytes;
        } else if (bytes > second) {
            second = bytes;
        }
    }
    return 2 * layer + first + second;
}

int64_t hrt_train_dense_units_bytes(const struct hrt_program *program) {
    return most_bytes(program, program->unit, program->units, true) +
           most_bytes(program, program->bucket, program->dense_shard ? program->buckets : 0, false);
}

// ---- parameters

// NULL: there is no such layer, or nothing to do.
static struct part *find(const struct hrt_train_dense *dense, int unit, int64_t layer) {
    const struct hrt_train_dense_units *units = dense->units;
    if (!units->state->parted || layer < 0 || layer >= units->unit.list[unit].layers) return NULL;
    return &units->unit.part[units->unit.first[unit] + layer];
}

void hrt_train_dense_bring(struct hrt_train_dense *dense, int unit, int64_t layer) {
    struct part *part = find(dense, unit, layer);
    if (part)
        part->mark = hrt_train_dense_submit(dense, &part->job, part->queue, part->tensors,
                                            dense->params, false, true);
}

// Makes the copies that GEMMs read, of one layer of a parameter: of all experts where it is of a set.
static void round_param(const struct hrt_train_dense *dense, const struct hrt_param *param,
                        int64_t layer) {
    const struct hrt_state *state = dense->units->state;
    if (!param->rounded) return;
    if (param->set < 0) {
        hrt_params_round_tensor(param, param->offset + layer * param->elements, dense->params,
                                state->rounded);
        return;
    }
    const struct hrt_set *set = &dense->program->set[param->set];
    for (int64_t expert = 0; expert < set->experts; expert++)
        hrt_params_round_tensor(param, hrt_params_chunk_offset(set, layer, expert) + param->offset,
                                dense->params, state->rounded);
}

void hrt_train_dense_await(struct hrt_train_dense *dense, int unit, int64_t layer) {
    const struct hrt_program *program = dense->program;
    const struct hrt_bucket *list = &program->unit[unit];
    struct part *part = find(dense, unit, layer);
    if (!part) return;
    hrt_net_lane_join(dense->comm, part->mark, "parameters");
    for (int i = 0; i < list->params; i++)
        round_param(dense, &program->param[list->param[i]], layer);
    for (int i = 0; i < list->sets; i++) {
        for (int k = 0; k < program->params; k++) {
            if (program->param[k].set == list->set[i])
                round_param(dense, &program->param[k], layer);
        }
    }
}

// The copies of a tensor in bf16, this rank's part included: they are made anew when the unit comes.
static void forget_copies(const struct hrt_train_dense *dense, int64_t index) {
    const struct hrt_train_dense_tensor *tensor = &dense->tensor[index];
    hk_bf16 *rounded = dense->units->state->rounded;
    if (!rounded) return;
    hrt_device_forget(dense->device, rounded + tensor->offset,
                      (size_t)tensor->count * sizeof *rounded);
}

void hrt_train_dense_release(struct hrt_train_dense *dense, int unit, int64_t layer) {
    const struct part *part = find(dense, unit, layer);
    for (int64_t i = 0; part && i < part->tensors; i++) {
        hrt_train_dense_forget_others(dense, part->queue[i], dense->params);
        forget_copies(dense, part->queue[i]);
    }
}

void hrt_train_dense_part(struct hrt_state *state) {
    if (!state->program->dense_shard || !state->dense) return;
    hrt_train_dense_forget(state->dense, state->values[HRT_PARAMETERS]);
    state->parted = true;
}

void hrt_train_dense_make_whole(struct hrt_state *state) {
    if (!state->program->dense_shard || !state->dense) return;
    hrt_train_dense_gather(state->dense, state->values[HRT_PARAMETERS]);
}

// ---- gradients

// Zeroes [from, to): returns whole pages to the system, and clears the rest by hand.
static void clear(const struct hrt_train_dense *dense, char *from, char *to) {
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    char *first = from + (page - (uintptr_t)from % page) % page, *last = to - (uintptr_t)to % page;
    if (first >= last) {
        memset(from, 0, (size_t)(to - from));
        return;
    }
    memset(from, 0, (size_t)(first - from));
    memset(last, 0, (size_t)(to - last));
    hrt_device_forget(dense->device, first, (size_t)(last - first));
}

void hrt_train_dense_clear_others(const struct hrt_train_dense *dense, int64_t index) {
    const struct hrt_train_dense_tensor *tensor = &dense->tensor[index];
    char *grads = dense->grads;
    int64_t count;
    const int64_t own = hrt_train_dense_own(dense, index, &count);
    clear(dense, grads + (size_t)tensor->offset * dense->element,
          grads + (size_t)own * dense->element);
    clear(dense, grads + (size_t)(own + count) * dense->element,
          grads + (size_t)(tensor->offset + tensor->count) * dense->element);
}

void hrt_train_dense_complete(struct hrt_train_dense *dense) {
    if (!dense->units || !dense->units->summed) return;
    const struct part *part = dense->units->summed;
    dense->units->summed = NULL;
    hrt_net_lane_join(dense->comm, part->mark, "the sum of gradients");
    for (int64_t i = 0; i < part->tensors; i++) hrt_train_dense_clear_others(dense, part->queue[i]);
}

void hrt_train_dense_reduce(struct hrt_train_dense *dense, int bucket, int64_t layer) {
    struct parts *parts = &dense->units->bucket;
    struct part *part = &parts->part[parts->first[bucket] + layer];
    hrt_train_dense_complete(dense);
    part->mark = hrt_train_dense_submit(dense, &part->job, part->queue, part->tensors, dense->grads,
                                        true, false);
    dense->units->summed = part;
}
