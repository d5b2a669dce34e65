// Plans of layers, calibration, and how rows are divided: the planner's episode of each set, on what the
// gates of the last iterations sent from each rank to each expert. All ranks know all counts, so all of
// them plan alike.
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/experts/experts.h"
#include "runtime/experts/history.h"
#include "runtime/experts/layer.h"
#include "runtime/experts/moves.h"
#include "runtime/params/tensor.h"
#include "runtime/plan/plan.h"

// ---- what a policy is given

// Counts of a layer's last iterations, and 0: of those to come.
static const uint32_t *remembered(void *context, int32_t at, int32_t back) {
    const struct hrt_moving_set *moving = context;
    const struct hrt_moving_layer *layer = &moving->layer[at];
    const int64_t cells = moving->set->experts * moving->episode.topology->devices;
    if (back == 0) return layer->is_known ? layer->known : NULL;
    if (back > layer->seen) return NULL;
    return layer->window + (layer->seen - back) % moving->episode.window * cells;
}

bool hrt_experts_episode_create(struct hrt_fssdp *fssdp, int set, int64_t holders) {
    struct hrt_moving_set *moving = &fssdp->set[set];
    struct hpl_episode *episode = &moving->episode;
    *episode = (struct hpl_episode){
        .topology = &fssdp->topology,
        .layers = (int32_t)moving->set->layers,
        .experts = (int32_t)moving->set->experts,
        .counts = remembered,
        .context = moving,
        .given = moving->set->forecast,
        .owner = fssdp->state->placement->owner[set],
    };
    const struct hpl_sizes sizes = {
        .param_bytes = moving->slots.param_stride,
        .grad_bytes =
            moving->slots.grad_stride / (fssdp->program->gradients_bf16 ? 2 : 1), // Under way.
        .row_bytes =
            moving->set->width * (int64_t)hrt_params_element_bytes(fssdp->program->precision),
    };
    if (!hpl_episode_move(episode, fssdp->movement, &sizes)) return false;
    const size_t bytes = hpl_episode_bytes(episode, (int32_t)holders);
    moving->memory = malloc(bytes);
    if (!moving->memory) return false;
    const struct hpl_work work = {.at = moving->memory,
                                  .end = (unsigned char *)moving->memory + bytes};
    return hpl_episode_begin(episode, work, (int32_t)holders) == HPL_OK;
}

// ---- slots

static void take_slot(const struct hrt_fssdp *fssdp, const struct hrt_moving_set *set,
                      struct hrt_moving_layer *layer, const int32_t *owner, int32_t expert) {
    const int rank = fssdp->comm->rank;
    if (owner[expert] == rank || layer->slot[expert] >= 0) return;
    for (int32_t k = layer->plan.first[expert]; k < layer->plan.first[expert + 1]; k++) {
        if (layer->plan.holder[k] != rank) continue;
        assert(layer->used < set->slots.replicas);
        layer->slot[expert] = layer->used++;
    }
}

// Makes `placed` of the layer its plan: the computing ranks, the holders, and their slots; replicas that have
// one keep it.
static void adopt(struct hrt_fssdp *fssdp, int set, int64_t at) {
    const struct hrt_moving_set *moving = &fssdp->set[set];
    struct hrt_moving_layer *layer = &moving->layer[at];
    const int32_t *owner = hrt_experts_layer_owners(fssdp, set, at);
    hrt_experts_planned(fssdp, set, at, hpl_plan_with_owners(&layer->plan, &layer->placed, owner));
    layer->is_scheduled = false;
    hrt_experts_place(fssdp->state->experts, set, at, &layer->placed);
    for (int32_t e = 0; e < layer->plan.experts; e++) take_slot(fssdp, moving, layer, owner, e);
}

// A layer's counts enter its forecast, which makes what was planned from it ahead old.
static void remember(struct hrt_fssdp *fssdp, int set, int64_t at) {
    const struct hrt_moving_set *moving = &fssdp->set[set];
    struct hrt_moving_layer *layer = &moving->layer[at];
    const int64_t cells = fssdp->comm->size * moving->set->experts;
    const int64_t place = layer->seen++ % fssdp->movement->window; // The oldest.
    memcpy(layer->window + place * cells, hrt_experts_counts(fssdp->state->experts, set, at),
           (size_t)cells * sizeof *layer->window);
    if (!layer->is_known) layer->is_ahead = false;
}

void hrt_experts_fssdp_share_counts(struct hrt_fssdp *fssdp) {
    for (int i = 0; i < fssdp->program->sets; i++) {
        const struct hrt_set *set = fssdp->set[i].set;
        const int64_t each = set->experts, cells = fssdp->comm->size * each;
        for (int64_t row = 0; row < set->layers * fssdp->movement->window; row++) {
            const int64_t layer = row / fssdp->movement->window;
            uint32_t *counts =
                fssdp->set[i].layer[layer].window + row % fssdp->movement->window * cells;
            hrt_experts_gather_counts(fssdp->state->experts, counts + fssdp->comm->rank * each,
                                      counts, each);
        }
    }
}

// In the steady state that is the layer before, for its next iteration. So the ranks' plans are compared, with the
// next counts, long before they are needed.
void hrt_experts_plan_ahead(struct hrt_fssdp *fssdp) {
    for (int set = 0; set < fssdp->program->sets; set++) {
        struct hrt_moving_set *moving = &fssdp->set[set];
        for (int64_t at = 0; at < moving->set->layers; at++) {
            struct hrt_moving_layer *layer = &moving->layer[at];
            if (layer->is_ahead) continue;
            hrt_experts_planned(
                fssdp, set, at,
                hpl_episode_plan(&moving->episode, (int32_t)at, NULL, &layer->ahead));
            layer->is_ahead = true;
            hrt_experts_decide_plan(fssdp, set, at, &layer->ahead);
            layer->told = hrt_experts_compared(fssdp->state->experts);
        }
    }
}

// Sets layer->placed: to what was planned ahead, by the counts, or not at all.
static void place(struct hrt_fssdp *fssdp, int set, int64_t at) {
    struct hrt_moving_set *moving = &fssdp->set[set];
    struct hrt_moving_layer *layer = &moving->layer[at];
    struct hrt_experts *experts = fssdp->state->experts;
    if (fssdp->policy->when == HPL_WHEN_PERIODIC) return;
    if (fssdp->policy->when == HPL_WHEN_EXACT) {
        hrt_experts_planned(fssdp, set, at,
                            hpl_episode_plan(&moving->episode, (int32_t)at,
                                             hrt_experts_counts(experts, set, at), &layer->placed));
        hrt_experts_decide_plan(fssdp, set, at, &layer->placed);
        return;
    }
    hrt_experts_plan_ahead(fssdp);
    if (layer->told == hrt_experts_compared(experts)) hrt_experts_agree_now(fssdp);
    hrt_experts_planned(fssdp, set, at, hpl_plan_copy(&layer->placed, &layer->ahead));
}

void hrt_experts_plan(struct hrt_fssdp *fssdp, int set, int64_t at) {
    struct hrt_moving_set *moving = &fssdp->set[set];
    struct hrt_moving_layer *layer = &moving->layer[at];
    if (layer->prefetched) return;
    hrt_experts_release_params(fssdp, set,
                               at); // An evaluation has no backward that would release them.
    layer->used = 0;
    memset(layer->slot, -1, (size_t)moving->set->experts * sizeof *layer->slot);
    place(fssdp, set, at);
    adopt(fssdp, set, at);
    if (fssdp->policy->when == HPL_WHEN_EXACT) hrt_experts_waves(fssdp->state->experts, set, at);
}

void hrt_experts_prefetch(struct hrt_fssdp *fssdp, int set, int64_t layer) {
    if (layer < 0 || layer >= fssdp->set[set].set->layers) return;
    struct hrt_moving_layer *moving = &fssdp->set[set].layer[layer];
    if (moving->prefetched) return; // Another wave.
    hrt_experts_plan(fssdp, set, layer);
    hrt_experts_materialize(fssdp, set, layer, false);
    moving->prefetched = true;
}

// Prices are picoseconds.
static void count_calibration(struct hrt_moving_layer *layer,
                              const struct hpl_calibration *result) {
    layer->moved.weighed++;
    if (!result->taken) return;
    layer->moved.taken++;
    layer->moved.gain += 1e-12 * (double)result->gain;
    layer->moved.price += 1e-12 * (double)result->price;
}

void hrt_experts_calibrate(struct hrt_fssdp *fssdp, int set, int64_t at) {
    struct hrt_moving_set *moving = &fssdp->set[set];
    struct hrt_moving_layer *layer = &moving->layer[at];
    const bool lasts = fssdp->movement->lifetime == HPL_LIFETIME_STEP;
    struct hpl_calibration result;
    hrt_experts_planned(fssdp, set, at,
                        hpl_episode_calibrate(&moving->episode, (int32_t)at,
                                              lasts ? fssdp->left : 1,
                                              hrt_experts_counts(fssdp->state->experts, set, at),
                                              &layer->placed, &result));
    if (hpl_episode_calibrates(&moving->episode)) {
        hrt_experts_decide_plan(fssdp, set, at, &layer->placed); // Also where it is not taken.
        count_calibration(layer, &result);
    }
    const int32_t *owner = hrt_experts_layer_owners(fssdp, set, at);
    if (result.taken) {
        hrt_experts_planned(fssdp, set, at,
                            hpl_plan_added(&fssdp->scratch, &layer->plan, &layer->placed, owner));
        adopt(fssdp, set, at);
    }
    // Quotas follow from the plan as it now is, so that one comparison serves both.
    hrt_experts_waves(fssdp->state->experts, set, at);
    if (!result.taken) return;
    hrt_experts_planned(fssdp, set, at,
                        hpl_schedule_of(fssdp->policy, &fssdp->topology, owner, &fssdp->scratch,
                                        moving->slots.segments, &fssdp->schedule,
                                        &moving->episode.work));
    hrt_experts_move_start(fssdp, set, at, HRT_MOVE_ADDED, &fssdp->schedule);
}

// ---- rows

// Finds the shares of holders, from which quotas follow, and records the counts once in an iteration. All decisions by
// exact counts, in this plan and the one before, are hashed by then: the others may compare them.
static void begin_division(struct hrt_fssdp *fssdp, int set, int64_t at,
                           const struct hpl_plan *plan, const struct hpl_loads *loads) {
    struct hpl_episode *episode = &fssdp->set[set].episode;
    const size_t holders = (size_t)plan->first[plan->experts];
    hrt_experts_planned(fssdp, set, at,
                        hpl_episode_divide(episode, (int32_t)at, loads->rows, plan));
    const bool shares = episode->split == HPL_SPLIT_QUOTA || episode->split == HPL_SPLIT_PLANNED;
    if (shares)
        hrt_experts_decide(
            fssdp, (struct hrt_decision){
                       HRT_DECIDED_ROWS, set, at, fssdp->set[set].layer[at].seen + 1,
                       hrt_experts_hash(0, episode->share, holders * sizeof *episode->share)});
    if (hpl_episode_decides(episode)) hrt_experts_compare(fssdp->state->experts);
    if (fssdp->training) remember(fssdp, set, at);
}

void hrt_experts_quota(void *context, int set, int64_t layer, const struct hpl_plan *plan,
                       const struct hpl_loads *loads, const struct hpl_part *part) {
    struct hrt_fssdp *fssdp = context;
    struct hpl_episode *episode = &fssdp->set[set].episode;
    begin_division(fssdp, set, layer, plan, loads);
    hrt_experts_planned(
        fssdp, set, layer,
        hpl_episode_route_part(episode, loads->rows, plan, fssdp->comm->rank, part));
}
