// Counting tokens per expert.
#include "runtime/train/load_counts.h"

#include <stdlib.h>
#include <string.h>

static int64_t size_of(const struct hrt_program *program, int index) {
    const struct hrt_set *set = &program->set[program->load[index].set];
    return set->layers * set->experts;
}

// From the first layer's counts to the end of the last one's.
static size_t bytes_of(const struct hrt_program *program, int index) {
    const struct hrt_set *set = &program->set[program->load[index].set];
    const size_t layers = (size_t)set->layers - 1;
    return layers * program->load[index].arena_stride + (size_t)set->experts * sizeof(int32_t);
}

bool hrt_load_counts_create(struct hrt_load_counts *loads, const struct hrt_program *program,
                            struct hrt_error *error) {
    *loads = (struct hrt_load_counts){.program = program};
    size_t most = 1;
    for (int i = 0; i < program->loads; i++) {
        loads->counts += size_of(program, i);
        if (bytes_of(program, i) > most) most = bytes_of(program, i);
    }
    loads->count = calloc((size_t)loads->counts + 1, sizeof *loads->count);
    loads->block = malloc(most);
    if (loads->count && loads->block) return true;
    hrt_load_counts_destroy(loads);
    return hrt_fail(error, "out of memory");
}

void hrt_load_counts_destroy(struct hrt_load_counts *loads) {
    free(loads->count);
    free(loads->block);
    *loads = (struct hrt_load_counts){0};
}

void hrt_load_counts_clear(struct hrt_load_counts *loads) {
    memset(loads->count, 0, (size_t)loads->counts * sizeof *loads->count);
}

void hrt_load_counts_add(struct hrt_load_counts *loads, struct hrt_device *device,
                         const void *arena) {
    int64_t *count = loads->count;
    for (int i = 0; i < loads->program->loads; i++) {
        const struct hrt_loads *load = &loads->program->load[i];
        const struct hrt_set *set = &loads->program->set[load->set];
        hrt_device_read(device, loads->block, (const char *)arena + load->arena_offset,
                        bytes_of(loads->program, i), HRT_WHY_LOADS);
        for (int64_t layer = 0; layer < set->layers; layer++) {
            const int32_t *counted =
                (const int32_t *)(loads->block + (size_t)layer * load->arena_stride);
            for (int64_t e = 0; e < set->experts; e++) *count++ += counted[e];
        }
    }
}

const int64_t *hrt_load_counts_of(const struct hrt_load_counts *loads, int index) {
    const int64_t *count = loads->count;
    for (int i = 0; i < index; i++) count += size_of(loads->program, i);
    return count;
}

static double layer_imbalance(const int64_t *count, int64_t experts) {
    int64_t most = 0, sum = 0;
    for (int64_t e = 0; e < experts; e++) {
        sum += count[e];
        if (count[e] > most) most = count[e];
    }
    return sum > 0 ? (double)most * (double)experts / (double)sum : 0;
}

double hrt_load_counts_imbalance(const struct hrt_load_counts *loads) {
    double worst = 0;
    for (int i = 0; i < loads->program->loads; i++) {
        const struct hrt_set *set = &loads->program->set[loads->program->load[i].set];
        const int64_t *count = hrt_load_counts_of(loads, i);
        for (int64_t layer = 0; layer < set->layers; layer++) {
            const double imbalance = layer_imbalance(count + layer * set->experts, set->experts);
            if (imbalance > worst) worst = imbalance;
        }
    }
    return worst;
}
