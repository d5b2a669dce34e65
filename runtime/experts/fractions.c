// Finds this rank's tokens in an iteration, and the fractions of a group's top-k choices that experts get.
#include "kernels/fractions/fractions.h"

#include <assert.h>
#include <string.h>

#include "runtime/experts/layer.h"

void hrt_experts_tokens(struct hrt_experts *experts, int64_t each, int64_t all) {
    experts->each = each;
    experts->all = all;
}

struct hrt_part hrt_experts_part_of(const struct hrt_experts *experts, int64_t tokens) {
    const int64_t each = experts->all ? experts->each : tokens;
    const int64_t all = experts->all ? experts->all : tokens * experts->comm->size;
    const int64_t first = each * experts->comm->rank, left = all - first;
    const int64_t own = left < 0 ? 0 : left < tokens ? left : tokens;
    return (struct hrt_part){.first = first, .own = own, .each = each, .all = all};
}

bool hrt_experts_group_is_alone(const struct hrt_part *part, int64_t group) {
    return group > 0 && part->each % group == 0;
}

// The counts of all ranks, [groups][experts]; of all groups up to each one where `running` counts a step.
static const int64_t *count_groups(struct hrt_experts *experts, const struct hrt_experts_set *set,
                                   const struct hrt_part *part, int32_t *running,
                                   const int32_t *ids, int64_t size, int64_t groups,
                                   int64_t iteration) {
    int64_t *count = experts->counts;
    memset(count, 0, (size_t)(groups * set->experts) * sizeof *count);
    for (int64_t t = 0; t < part->own; t++) {
        int64_t *of = count + (part->first + t) / size * set->experts;
        for (int64_t j = 0; j < set->picks; j++) of[ids[t * set->picks + j]]++;
    }
    hrt_net_comm_all_reduce(experts->comm, count, groups * set->experts, HRT_INT64);
    if (!running) return count;
    for (int64_t e = 0; e < set->experts; e++) {
        int64_t sum = iteration > 1 ? running[e] : 0;
        for (int64_t g = 0; g < groups; g++) {
            sum += count[g * set->experts + e];
            count[g * set->experts + e] = sum;
        }
        if (iteration > 0) running[e] = (int32_t)sum;
    }
    return count;
}

// As hk_fractions divides.
static void divide(const struct hrt_experts *experts, void *fractions, int64_t sequence,
                   const int64_t *count, int64_t size) {
    int64_t picks = 0;
    for (int64_t e = 0; e < size; e++) picks += count[e];
    for (int64_t e = 0; e < size; e++) {
        const double fraction = picks > 0 ? (double)count[e] / (double)picks : 0;
        if (experts->shape.element == sizeof(float)) {
            ((float *)fractions)[sequence * size + e] = (float)fraction;
        } else {
            ((double *)fractions)[sequence * size + e] = fraction;
        }
    }
}

// For groups that lie each on one rank.
static void find_alone(struct hrt_experts *experts, const struct hrt_experts_set *of,
                       void *fractions, const int32_t *ids, int64_t sequences, int64_t positions,
                       int64_t group) {
    struct hrt_device *device = experts->device;
    if (hrt_device_is_apart(device)) {
        device->backend->fractions(device, fractions, ids, sequences, positions, of->picks,
                                   of->experts, group / positions);
    } else if (experts->shape.element == sizeof(float)) {
        hk_fractions_f32(fractions, NULL, ids, sequences, positions, of->picks, of->experts,
                         group / positions, 0);
    } else {
        hk_fractions_f64(fractions, NULL, ids, sequences, positions, of->picks, of->experts,
                         group / positions, 0);
    }
}

static void find_fractions(struct hrt_experts *experts, int set, int64_t layer, void *fractions,
                           int32_t *running, const int32_t *ids, int64_t sequences,
                           int64_t positions, int64_t group, int64_t iteration) {
    const struct hrt_experts_set *of = hrt_layer(experts, set, layer)->set;
    const struct hrt_part part = hrt_experts_part_of(experts, sequences * positions);
    const int64_t size = group ? group : part.all, groups = (part.all + size - 1) / size;
    assert(groups <= experts->comm->size * experts->shape.sequences);
    const int64_t *count = count_groups(experts, of, &part, running, ids, size, groups, iteration);
    for (int64_t s = 0; s < sequences; s++) {
        const int64_t at = (part.first + s * positions) / size;
        divide(experts, fractions, s, count + (at < groups ? at : groups - 1) * of->experts,
               of->experts);
    }
}

void hrt_experts_fractions(struct hrt_experts *experts, int set, int64_t layer, void *fractions,
                           int32_t *running, const int32_t *ids, int64_t sequences,
                           int64_t positions, int64_t group, int64_t iteration) {
    const struct hrt_experts_layer *routed = hrt_layer(experts, set, layer);
    const struct hrt_experts_set *of = routed->set;
    const struct hrt_experts_copies *copies = &experts->copies;
    const size_t picks = (size_t)(sequences * positions * of->picks);
    const struct hrt_part part = hrt_experts_part_of(experts, sequences * positions);
    const size_t bytes = (size_t)(sequences * of->experts) * experts->shape.element;
    if (!running && hrt_experts_group_is_alone(&part, group)) {
        find_alone(experts, of, fractions, ids, sequences, positions, group);
        return;
    }
    void *here = hrt_experts_here(experts, copies->fractions, fractions);
    int32_t *run = running ? hrt_experts_here(experts, routed->running, running) : NULL;
    if (experts->dropped == routed) {
        ids = copies->ids; // As they were before some were dropped.
    } else {
        ids = hrt_experts_see(experts, copies->ids, ids, picks * sizeof *ids);
        hrt_experts_join(experts);
    }
    find_fractions(experts, set, layer, here, run, ids, sequences, positions, group, iteration);
    hrt_experts_show(experts, fractions, here, bytes);
}
