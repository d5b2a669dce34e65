// Counting tokens per expert.
#include "runtime/train/load_counts.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/select_bias/select_bias.h"

static int64_t size_of(const struct hrt_program *program, int index) {
    const struct hrt_set *set = &program->set[program->load[index].set];
    return set->layers * set->experts;
}

bool hrt_train_load_counts_create(struct hrt_load_counts *loads, const struct hrt_program *program,
                                  struct hrt_device *device, struct hrt_error *error) {
    *loads = (struct hrt_load_counts){.program = program, .empty = true};
    for (int i = 0; i < program->loads; i++) loads->counts += size_of(program, i);
    loads->count = calloc((size_t)loads->counts + 1, sizeof *loads->count);
    const size_t bytes = (size_t)loads->counts * sizeof *loads->counted;
    if (hrt_device_is_apart(device)) {
        loads->device = device;
        loads->counted = device->backend->take(device, HRT_OF_DEVICE, bytes, false);
    }
    if (loads->count && (loads->counted || !loads->device)) return true;
    hrt_train_load_counts_destroy(loads);
    return hrt_fail(error, "out of memory");
}

void hrt_train_load_counts_destroy(struct hrt_load_counts *loads) {
    const size_t bytes = (size_t)loads->counts * sizeof *loads->counted;
    if (loads->counted)
        loads->device->backend->give(loads->device, HRT_OF_DEVICE, loads->counted, bytes);
    free(loads->count);
    *loads = (struct hrt_load_counts){0};
}

void hrt_train_load_counts_clear(struct hrt_load_counts *loads) {
    memset(loads->count, 0, (size_t)loads->counts * sizeof *loads->count);
    loads->empty = true;
}

void hrt_train_load_counts_add(struct hrt_load_counts *loads, const void *arena) {
    const enum hk_write write = loads->empty ? HK_STORE : HK_ADD;
    int64_t at = 0;
    for (int i = 0; i < loads->program->loads; i++) {
        const struct hrt_loads *load = &loads->program->load[i];
        const struct hrt_set *set = &loads->program->set[load->set];
        const int32_t *from = (const int32_t *)((const char *)arena + load->arena_offset);
        const int64_t stride = (int64_t)(load->arena_stride / sizeof *from);
        if (loads->device) {
            loads->device->backend->add_counts(loads->device, loads->counted + at, from,
                                               set->layers, set->experts, stride, write);
        } else {
            hk_add_counts(loads->count + at, from, set->layers, set->experts, stride, write);
        }
        at += size_of(loads->program, i);
    }
    loads->empty = false;
}

void hrt_train_load_counts_collect(struct hrt_load_counts *loads) {
    if (!loads->device || loads->empty) return;
    hrt_device_read(loads->device, loads->count, loads->counted,
                    (size_t)loads->counts * sizeof *loads->count, HRT_WHY_LOADS);
}

const int64_t *hrt_train_load_counts_of(const struct hrt_load_counts *loads, int index) {
    const int64_t *count = loads->count;
    for (int i = 0; i < index; i++) count += size_of(loads->program, i);
    return count;
}
