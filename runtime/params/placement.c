// The table of owners.
#include "runtime/params/placement.h"

#include <stdlib.h>

#include "runtime/params/part.h"
#include "runtime/plan/plan.h"

static void fill(int32_t *owner, const struct hrt_set *set, int ranks) {
    for (int64_t chunk = 0; chunk < set->layers * set->experts; chunk++)
        owner[chunk] = set->owner ? set->owner[chunk]
                                  : hpl_even_owner(chunk % set->experts, set->experts, ranks);
}

static bool list_owners(struct hrt_placement *placement) {
    const struct hrt_program *program = placement->program;
    placement->owner = calloc((size_t)program->sets + 1, sizeof *placement->owner);
    for (int i = 0; placement->owner && i < program->sets; i++) {
        const struct hrt_set *set = &program->set[i];
        placement->owner[i] = malloc((size_t)(set->layers * set->experts) * sizeof(int32_t));
        if (!placement->owner[i]) return false;
        fill(placement->owner[i], set, (int)program->world);
    }
    return placement->owner;
}

static bool list_held(struct hrt_placement *placement) {
    const struct hrt_program *program = placement->program;
    struct hpl_held_param *held = calloc((size_t)program->params + 1, sizeof *held);
    struct hpl_held_set *sets = calloc((size_t)program->sets + 1, sizeof *sets);
    placement->held = (struct hpl_held){
        .param = held,
        .set = sets,
        .params = program->params,
        .sets = program->sets,
        .all_elements = program->param_elements,
        .element = program->precision == HRT_FP64 ? sizeof(double) : sizeof(float),
        .ranks = program->world ? (int32_t)program->world : 1,
        .states = program->dense == HRT_DENSE_STATES,
        .moves = program->movement && program->movement->reshard_every > 0,
    };
    for (int i = 0; held && i < program->params; i++) {
        const struct hrt_param *param = &program->param[i];
        const bool cut = hrt_params_is_cut(program, param, HRT_PARAMETERS);
        held[i] = (struct hpl_held_param){.offset = param->offset,
                                          .elements = hrt_params_kept(program, param),
                                          .layers = param->layers,
                                          .set = param->set,
                                          .trained = param->trainable,
                                          .frozen = param->frozen,
                                          .copied = param->rounded && !cut,
                                          .copied_only = param->rounded_only};
    }
    for (int i = 0; sets && i < program->sets; i++) {
        const struct hrt_set *set = &program->set[i];
        sets[i] = (struct hpl_held_set){.offset = set->offset,
                                        .chunk_elements = hrt_params_kept_chunk(program, set),
                                        .chunks = set->layers * set->experts,
                                        .owner = placement->owner ? placement->owner[i] : NULL};
    }
    return held && sets;
}

bool hrt_params_placement_create(struct hrt_placement *placement, const struct hrt_program *program,
                                 int rank, struct hrt_error *error) {
    *placement = (struct hrt_placement){.program = program, .rank = rank};
    if ((!program->owned || list_owners(placement)) && list_held(placement)) return true;
    hrt_params_placement_destroy(placement);
    return hrt_fail(error, "out of memory");
}

void hrt_params_placement_destroy(struct hrt_placement *placement) {
    for (int i = 0; placement->owner && i < placement->program->sets; i++)
        free(placement->owner[i]);
    free(placement->owner);
    free((void *)placement->held.param);
    free((void *)placement->held.set);
    placement->owner = NULL;
    placement->held = (struct hpl_held){0};
}

int hrt_params_owner(const struct hrt_placement *placement, int set, int64_t layer,
                     int64_t expert) {
    if (!placement->owner) return 0;
    return placement->owner[set][layer * placement->program->set[set].experts + expert];
}

bool hrt_params_owns(const struct hrt_placement *placement, int set, int64_t layer,
                     int64_t expert) {
    return !placement->owner || hrt_params_owner(placement, set, layer, expert) == placement->rank;
}
