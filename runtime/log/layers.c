// Layers and ranks as JSON: short lists, since there may be many of both.
#include "runtime/log/layers.h"

#include <jansson.h>

#include "runtime/train/routers.h"

static json_t *rows_of(const int64_t *rows, int ranks) {
    json_t *list = json_array();
    for (int r = 0; r < ranks; r++) json_array_append_new(list, json_integer(rows[r]));
    return list;
}

static json_t *owners_of(const struct hrt_layer_watch *layer) {
    json_t *list = json_array();
    for (int32_t e = 0; e < layer->plan.experts; e++)
        json_array_append_new(list, json_integer(layer->owner[e]));
    return list;
}

// [expert, rank] of each.
static json_t *replicas_of(const struct hrt_layer_watch *layer) {
    const struct hpl_plan *plan = &layer->plan;
    json_t *list = json_array();
    for (int32_t e = 0; e < plan->experts; e++) {
        for (int32_t k = plan->first[e]; k < plan->first[e + 1]; k++) {
            if (plan->holder[k] != layer->owner[e])
                json_array_append_new(list, json_pack("[ii]", e, plan->holder[k]));
        }
    }
    return list;
}

static json_t *layer_of(const struct hrt_layer_watch *layer, int ranks) {
    const struct hrt_moved_layer *moved = &layer->moved;
    json_t *of =
        json_pack("{s:o s:o s:o s:o s:I s:I s:f}", "before", rows_of(layer->before, ranks), "after",
                  rows_of(layer->after, ranks), "owner", owners_of(layer), "replicas",
                  replicas_of(layer), "waves", (json_int_t)layer->waves, "dropped",
                  (json_int_t)layer->dropped, "exposed_ms", 1e3 * moved->exposed);
    if (moved->weighed == 0) return of;
    json_object_set_new(of, "calibrated",
                        json_pack("{s:I s:I s:f s:f}", "weighed", (json_int_t)moved->weighed,
                                  "taken", (json_int_t)moved->taken, "gain_ms", 1e3 * moved->gain,
                                  "price_ms", 1e3 * moved->price));
    return of;
}

json_t *hrt_log_of_layers(const struct hrt_watch *watch) {
    const struct hrt_program *program = watch->state->program;
    const struct hrt_layer_watch *layer = watch->layer;
    json_t *sets = json_object();
    for (int i = 0; i < program->loads; i++) {
        const struct hrt_set *set = &program->set[program->load[i].set];
        json_t *layers = json_array();
        for (int64_t at = 0; at < set->layers; at++)
            json_array_append_new(layers, layer_of(layer++, watch->comm->size));
        json_object_set_new(sets, set->name, layers);
    }
    return sets;
}

// A list of each number: there may be many layers.
json_t *hrt_log_of_routers(const struct hrt_load_counts *loads) {
    const struct hrt_program *program = loads->program;
    json_t *sets = json_object();
    for (int i = 0; i < program->loads; i++) {
        const struct hrt_set *set = &program->set[program->load[i].set];
        const int64_t *count = hrt_train_load_counts_of(loads, i);
        json_t *load = json_array(), *entropy = json_array(), *dead = json_array();
        for (int64_t at = 0; at < set->layers; at++, count += set->experts) {
            const struct hrt_router router = hrt_train_router_of(count, set->experts);
            json_array_append_new(load, json_real(router.load));
            json_array_append_new(entropy, json_real(router.entropy));
            json_array_append_new(dead, json_integer(router.dead));
        }
        json_object_set_new(
            sets, set->name,
            json_pack("{s:o s:o s:o}", "load", load, "entropy", entropy, "dead", dead));
    }
    return sets;
}

json_t *hrt_log_of_ranks(const struct hrt_watch *watch) {
    json_t *ranks = json_array();
    for (int r = 0; r < watch->comm->size; r++) {
        const struct hrt_rank_watch *rank = &watch->rank[r];
        const struct hrt_moved *moved = &rank->moved;
        json_array_append_new(ranks, json_pack("{s:f s:f s:f s:f s:f s:f s:f}", "ms",
                                               1e3 * rank->seconds, "waited_ms", 1e3 * rank->waited,
                                               "transfer_ms", 1e3 * moved->seconds, "exposed_ms",
                                               1e3 * moved->exposed, "late_ms", 1e3 * moved->late,
                                               "received", moved->bytes, "memory", rank->memory));
    }
    return ranks;
}
