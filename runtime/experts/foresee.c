// Counts that are known before a step, as its routes are given (--route): ranks tell each other once, for all layers.
#include <stdlib.h>
#include <string.h>

#include "runtime/experts/experts.h"
#include "runtime/experts/moves.h"

bool hrt_experts_known_create(struct hrt_fssdp *fssdp) {
    const size_t ranks = (size_t)fssdp->comm->size;
    bool taken = true;
    for (int s = 0; s < fssdp->program->sets; s++) {
        struct hrt_moving_set *set = &fssdp->set[s];
        const size_t experts = (size_t)set->set->experts;
        fssdp->known_words += (size_t)set->set->layers * experts;
        for (int64_t i = 0; taken && i < set->set->layers; i++) {
            set->layer[i].known = calloc(ranks * experts, sizeof *set->layer[i].known);
            taken = set->layer[i].known;
        }
    }
    fssdp->known = calloc(ranks * fssdp->known_words + 1, sizeof *fssdp->known);
    return taken && fssdp->known;
}

uint32_t *hrt_experts_fssdp_known(struct hrt_fssdp *fssdp) {
    if (!fssdp || !fssdp->known) return NULL;
    return hrt_experts_told(fssdp->state->experts, fssdp->known, fssdp->known_words,
                            fssdp->comm->rank);
}

void hrt_experts_fssdp_foresee(struct hrt_fssdp *fssdp) {
    const size_t words = fssdp->known_words;
    size_t first = 0;
    struct hrt_experts *told_by = fssdp->state->experts;
    hrt_experts_tell(told_by, fssdp->known, words);
    for (int s = 0; s < fssdp->program->sets; s++) {
        const struct hrt_moving_set *set = &fssdp->set[s];
        const size_t experts = (size_t)set->set->experts;
        for (int64_t i = 0; i < set->set->layers; i++, first += experts) {
            struct hrt_moving_layer *layer = &set->layer[i];
            for (int r = 0; r < fssdp->comm->size; r++)
                memcpy(layer->known + (size_t)r * experts,
                       hrt_experts_told(told_by, fssdp->known, words, r) + first,
                       experts * sizeof *layer->known);
            layer->is_known = true;
            layer->is_ahead = false;
        }
    }
}
