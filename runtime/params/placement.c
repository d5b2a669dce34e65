// The table of owners.
#include "runtime/params/placement.h"

#include <stdlib.h>

#include "runtime/plan/plan.h"

static void fill(int32_t *owner, const struct hrt_set *set, int ranks) {
    for (int64_t chunk = 0; chunk < set->layers * set->experts; chunk++)
        owner[chunk] = set->owner ? set->owner[chunk]
                                  : hpl_even_owner(chunk % set->experts, set->experts, ranks);
}

bool hrt_placement_create(struct hrt_placement *placement, const struct hrt_program *program,
                          int rank, struct hrt_error *error) {
    *placement = (struct hrt_placement){.program = program, .rank = rank};
    if (!program->owned) return true;
    placement->owner = calloc((size_t)program->sets + 1, sizeof *placement->owner);
    if (!placement->owner) return hrt_fail(error, "out of memory");
    for (int i = 0; i < program->sets; i++) {
        const struct hrt_set *set = &program->set[i];
        placement->owner[i] = malloc((size_t)(set->layers * set->experts) * sizeof(int32_t));
        if (!placement->owner[i]) {
            hrt_placement_destroy(placement);
            return hrt_fail(error, "out of memory");
        }
        fill(placement->owner[i], set, (int)program->world);
    }
    return true;
}

void hrt_placement_destroy(struct hrt_placement *placement) {
    for (int i = 0; placement->owner && i < placement->program->sets; i++)
        free(placement->owner[i]);
    free(placement->owner);
    placement->owner = NULL;
}

int hrt_owner(const struct hrt_placement *placement, int set, int64_t layer, int64_t expert) {
    if (!placement->owner) return 0;
    return placement->owner[set][layer * placement->program->set[set].experts + expert];
}

bool hrt_owns(const struct hrt_placement *placement, int set, int64_t layer, int64_t expert) {
    return !placement->owner || hrt_owner(placement, set, layer, expert) == placement->rank;
}

int64_t hrt_most_owned(const struct hrt_program *program, int set) {
    const struct hrt_set *of = &program->set[set];
    const int64_t chunks = of->layers * of->experts;
    if (!program->owned) return chunks;
    int64_t most = (of->experts + program->world - 1) / program->world * of->layers;
    if (!of->owner) return most;
    most = 0;
    for (int64_t rank = 0; rank < program->world; rank++) {
        int64_t own = 0;
        for (int64_t chunk = 0; chunk < chunks; chunk++) own += of->owner[chunk] == rank;
        if (own > most) most = own;
    }
    return most;
}
