// The history of moving experts as JSON:
//   terms   what it depends on, in words
//   since   iterations since owners may last have changed
//   sets    of each: owners, began [chunks], seen [layers] and, of a policy that places for many iterations, placed
//           [layers] of {first [experts + 1], holder}
#include "runtime/experts/history.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/experts/moves.h"

// ---- terms

// Freed by the caller; NULL: out of memory.
static char *terms_of(const struct hrt_program *program, const struct hrt_comm *comm) {
    const struct hpl_movement *m = program->movement;
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    if (!out) return NULL;
    fprintf(out,
            "%s%s, %" PRId64 " slots, %" PRId64 " entries, calibrate %d, window %" PRId64
            ", owners change every %" PRId64 ", nodes",
            m->policy, m->even ? " evenly" : "", m->slots, m->overlap, (int)m->calibrate, m->window,
            m->reshard_every);
    for (int rank = 0; rank < comm->size; rank++) fprintf(out, " %d", (int)comm->node_of[rank]);
    for (int i = 0; i < program->sets; i++) {
        const struct hrt_set *set = &program->set[i];
        const size_t chunks = (size_t)(set->layers * set->experts);
        fprintf(out, ", %s %" PRId64 " x %" PRId64 " first owners %016" PRIx64, set->name,
                set->layers, set->experts,
                set->owner ? hrt_experts_hash(0, set->owner, chunks * sizeof *set->owner) : 0);
    }
    return fclose(out) == 0 ? text : NULL;
}

// ---- writing

static json_t *numbers32(const int32_t *number, int64_t count) {
    json_t *array = json_array();
    for (int64_t i = 0; i < count; i++) json_array_append_new(array, json_integer(number[i]));
    return array;
}

static json_t *placed_of(const struct hrt_moving_set *set) {
    json_t *placed = json_array();
    for (int64_t i = 0; i < set->set->layers; i++) {
        const struct hpl_plan *plan = &set->layer[i].placed;
        const int32_t holders = plan->first[plan->experts];
        json_array_append_new(placed, json_pack("{s:o s:o}", "first",
                                                numbers32(plan->first, plan->experts + 1), "holder",
                                                numbers32(plan->holder, holders)));
    }
    return placed;
}

static json_t *set_of(const struct hrt_fssdp *fssdp, int index) {
    const struct hrt_moving_set *set = &fssdp->set[index];
    const int64_t chunks = set->set->layers * set->set->experts;
    json_t *seen = json_array();
    for (int64_t i = 0; i < set->set->layers; i++)
        json_array_append_new(seen, json_integer(set->layer[i].seen));
    json_t *json = json_pack("{s:o s:o s:o}", "owners",
                             numbers32(fssdp->state->placement->owner[index], chunks), "began",
                             numbers32(set->episode.began, chunks), "seen", seen);
    if (json && fssdp->policy->when == HPL_WHEN_PERIODIC)
        json_object_set_new(json, "placed", placed_of(set));
    return json;
}

json_t *hrt_experts_fssdp_history(const struct hrt_fssdp *fssdp) {
    json_t *sets = json_array();
    char *terms = terms_of(fssdp->program, fssdp->comm);
    for (int i = 0; i < fssdp->program->sets; i++) json_array_append_new(sets, set_of(fssdp, i));
    json_t *history = terms ? json_pack("{s:s s:I s:o}", "terms", terms, "since",
                                        (json_int_t)fssdp->iterations, "sets", sets)
                            : NULL;
    if (!terms) json_decref(sets);
    free(terms);
    return history;
}

// ---- reading

static bool in_range(const json_t *array, size_t count, int64_t most) {
    if (json_array_size(array) != count) return false;
    for (size_t i = 0; i < count; i++) {
        const json_t *number = json_array_get(array, i);
        if (!json_is_integer(number) || json_integer_value(number) < 0 ||
            json_integer_value(number) > most)
            return false;
    }
    return true;
}

static int64_t number_at(const json_t *array, size_t at) {
    return json_integer_value(json_array_get(array, at));
}

// Whether every expert has a holder, and none twice.
static bool is_plan(const json_t *placed, size_t experts, int world) {
    const json_t *first = json_object_get(placed, "first"),
                 *holder = json_object_get(placed, "holder");
    const size_t holders = json_array_size(holder);
    if (!in_range(first, experts + 1, (int64_t)holders) || !in_range(holder, holders, world - 1) ||
        number_at(first, 0) != 0 || number_at(first, experts) != (int64_t)holders)
        return false;
    for (size_t e = 0; e < experts; e++) {
        const int64_t begin = number_at(first, e), end = number_at(first, e + 1);
        if (begin >= end) return false;
        for (int64_t k = begin + 1; k < end; k++) {
            if (number_at(holder, (size_t)k - 1) >= number_at(holder, (size_t)k)) return false;
        }
    }
    return true;
}

static bool is_periodic(const struct hpl_movement *m) {
    const struct hpl_policy *policy = hpl_policy_find(m->policy);
    return policy && policy->when == HPL_WHEN_PERIODIC;
}

static bool is_set(const json_t *json, const struct hrt_set *set, const struct hpl_movement *m,
                   int world) {
    const size_t experts = (size_t)set->experts, layers = (size_t)set->layers;
    const json_t *placed = json_object_get(json, "placed");
    if (!in_range(json_object_get(json, "owners"), layers * experts, world - 1) ||
        !in_range(json_object_get(json, "began"), layers * experts, world - 1) ||
        !in_range(json_object_get(json, "seen"), layers, INT64_MAX / 2))
        return false;
    if (!is_periodic(m)) return true;
    if (json_array_size(placed) != layers) return false;
    for (size_t i = 0; i < layers; i++) {
        if (!is_plan(json_array_get(placed, i), experts, world)) return false;
    }
    return true;
}

bool hrt_experts_fssdp_is_older(const json_t *history) {
    return json_object_get(json_array_get(json_object_get(history, "sets"), 0), "counts");
}

bool hrt_experts_fssdp_fits(const json_t *history, const struct hrt_placement *placement,
                            const struct hrt_comm *comm) {
    const struct hrt_program *program = placement->program;
    const char *there = json_string_value(json_object_get(history, "terms"));
    const json_t *sets = json_object_get(history, "sets"),
                 *since = json_object_get(history, "since");
    if (!program->movement || !there || json_array_size(sets) != (size_t)program->sets)
        return false;
    if (!json_is_integer(since) || json_integer_value(since) < 0) return false;
    if (hrt_experts_fssdp_is_older(history)) return false;
    char *here = terms_of(program, comm);
    bool fits = here && strcmp(here, there) == 0;
    for (int i = 0; fits && i < program->sets; i++)
        fits = is_set(json_array_get(sets, (size_t)i), &program->set[i], program->movement,
                      comm->size);
    free(here);
    return fits;
}

static void read32(const json_t *array, int32_t *number) {
    for (size_t i = 0; i < json_array_size(array); i++) number[i] = (int32_t)number_at(array, i);
}

void hrt_experts_fssdp_recall_owners(const json_t *history, struct hrt_placement *placement) {
    const json_t *sets = json_object_get(history, "sets");
    for (int i = 0; i < placement->program->sets; i++)
        read32(json_object_get(json_array_get(sets, (size_t)i), "owners"), placement->owner[i]);
}

// A placement that has become too large for its room cannot be: the terms are the same. NULL: there is none.
static void recall_layer(struct hrt_moving_layer *layer, const json_t *placed) {
    const json_t *first = json_object_get(placed, "first"),
                 *holder = json_object_get(placed, "holder");
    if (!placed || json_array_size(holder) > (size_t)layer->placed.capacity) return;
    read32(first, layer->placed.first);
    read32(holder, layer->placed.holder);
}

void hrt_experts_fssdp_recall(const json_t *history, struct hrt_fssdp *fssdp) {
    const json_t *sets = json_object_get(history, "sets");
    fssdp->iterations = json_integer_value(json_object_get(history, "since"));
    for (int i = 0; i < fssdp->program->sets; i++) {
        const json_t *json = json_array_get(sets, (size_t)i);
        struct hrt_moving_set *set = &fssdp->set[i];
        read32(json_object_get(json, "began"), set->episode.began);
        for (int64_t at = 0; at < set->set->layers; at++) {
            struct hrt_moving_layer *layer = &set->layer[at];
            layer->seen = number_at(json_object_get(json, "seen"), (size_t)at);
            layer->is_ahead = false;
            recall_layer(layer, json_array_get(json_object_get(json, "placed"), (size_t)at));
        }
    }
}
