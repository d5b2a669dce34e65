// The table of owners.
#include "runtime/params/owners.h"

#include <stdlib.h>

#include "runtime/experts/experts.h"

static void fill(int32_t *owner, const struct hrt_set *set, int ranks) {
    for (int64_t chunk = 0; chunk < set->layers * set->experts; chunk++)
        owner[chunk] = set->owner ? set->owner[chunk]
                                  : hrt_expert_owner(chunk % set->experts, set->experts, ranks);
}

bool hrt_owners_create(struct hrt_program *program, struct hrt_error *error) {
    program->owners = NULL;
    if (!program->owned) return true;
    program->owners = calloc((size_t)program->sets + 1, sizeof *program->owners);
    if (!program->owners) return hrt_fail(error, "out of memory");
    for (int i = 0; i < program->sets; i++) {
        const struct hrt_set *set = &program->set[i];
        program->owners[i] = malloc((size_t)(set->layers * set->experts) * sizeof(int32_t));
        if (!program->owners[i]) {
            hrt_owners_destroy(program);
            return hrt_fail(error, "out of memory");
        }
        fill(program->owners[i], set, (int)program->world);
    }
    return true;
}

void hrt_owners_destroy(struct hrt_program *program) {
    for (int i = 0; program->owners && i < program->sets; i++) free(program->owners[i]);
    free(program->owners);
    program->owners = NULL;
}

int hrt_owner(const struct hrt_program *program, int set, int64_t layer, int64_t expert) {
    const int64_t experts = program->set[set].experts;
    if (program->owners) return program->owners[set][layer * experts + expert];
    return hrt_expert_owner(expert, experts, (int)program->world);
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

bool hrt_owns(const struct hrt_program *program, int set, int64_t layer, int64_t expert) {
    return !program->owned || hrt_owner(program, set, layer, expert) == program->rank;
}
