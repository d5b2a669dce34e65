// Plans of layers, from the forecast or the counts; calibration; and how rows are divided.
//
// The forecast is the mean, rounded, of what the last iterations' gates sent from each rank to each
// expert. All ranks know all counts, so all of them plan alike.
#define _GNU_SOURCE // The program's name.
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "runtime/experts/experts.h"
#include "runtime/fssdp/moves.h"
#include "runtime/params/tensor.h"
#include "runtime/plan/calibrate.h"
#include "runtime/plan/share.h"

enum { SLACK = 10 }; // Thousandths of the mean load, given up to keep rows near (docs/planner.md).

void hrt_planned(const struct hrt_fssdp *fssdp, int set, int64_t layer, enum hpl_status status) {
    if (status == HPL_OK) return;
    fprintf(stderr, "%s: error: layer %d of set '%s' cannot be planned by '%s': %s\n",
            program_invocation_short_name, (int)layer, fssdp->program->set[set].name,
            fssdp->policy->name, hpl_status_text(status));
    hrt_comm_abort(fssdp->comm, HRT_EXIT_FAILED);
}

const int32_t *hrt_layer_owners(const struct hrt_fssdp *fssdp, int set, int64_t layer) {
    return fssdp->program->owners[set] + layer * fssdp->program->set[set].experts;
}

void hrt_plan_copy(struct hpl_plan *to, const struct hpl_plan *from) {
    const int32_t holders = from->first[from->experts];
    assert(holders <= to->capacity);
    to->experts = from->experts;
    memcpy(to->first, from->first, ((size_t)from->experts + 1) * sizeof *to->first);
    memcpy(to->holder, from->holder, (size_t)holders * sizeof *to->holder);
}

void hrt_plan_of_owners(struct hpl_plan *plan, const int32_t *owner) {
    for (int32_t e = 0; e <= plan->experts; e++) plan->first[e] = e;
    memcpy(plan->holder, owner, (size_t)plan->experts * sizeof *owner);
}

void hrt_plan_with_owners(struct hpl_plan *to, const struct hpl_plan *plan, const int32_t *owner) {
    int32_t count = 0;
    to->experts = plan->experts;
    for (int32_t e = 0; e < plan->experts; e++) {
        int32_t k = plan->first[e];
        bool listed = false;
        to->first[e] = count;
        while (k < plan->first[e + 1] || !listed) {
            const bool own_next =
                !listed && (k == plan->first[e + 1] || plan->holder[k] >= owner[e]);
            const int32_t holder = own_next ? owner[e] : plan->holder[k];
            if (!own_next || (k < plan->first[e + 1] && plan->holder[k] == owner[e])) k++;
            listed |= own_next;
            assert(count < to->capacity);
            to->holder[count++] = holder;
        }
    }
    to->first[plan->experts] = count;
}

// ---- what a policy is given

// Rows that make a chunk's parameters, its gradient or both worth their bytes: fewer cost less.
static int32_t paying_rows(const struct hrt_fssdp *fssdp, const struct hrt_moving_set *moving,
                           bool params, bool grads) {
    const int64_t row = moving->set->width * (int64_t)hrt_element_bytes(fssdp->program->precision);
    return hpl_paying_rows(params ? moving->slots.param_stride : 0,
                           grads ? moving->slots.grad_stride : 0, row);
}

static struct hpl_problem problem_of(const struct hrt_fssdp *fssdp, int set, int64_t layer,
                                     const struct hpl_loads *loads) {
    const struct hrt_movement *movement = fssdp->movement;
    const struct hrt_moving_set *moving = &fssdp->set[set];
    const int64_t experts = moving->set->experts;
    const bool first = layer == 0; // Behind attention alone, and gradients behind less.
    const bool calibrates = fssdp->policy->calibrates && movement->calibrate != HRT_CALIBRATE_NEVER;
    const int64_t overlap = movement->overlap < experts ? movement->overlap : experts;
    const int64_t slots = movement->slots < experts ? movement->slots : experts;
    return (struct hpl_problem){
        .topology = &fssdp->topology,
        .experts = (int32_t)experts,
        .owner = moving->first_owner ? moving->first_owner + layer * experts
                                     : hrt_layer_owners(fssdp, set, layer),
        .loads = loads,
        .budget = {.slots = (int32_t)slots,
                   .entries = (int32_t)overlap,
                   .chunk_bytes = movement->chunk_bytes,
                   .window_bytes = movement->window_bytes,
                   .slack = SLACK,
                   // What balance does not need before the gate is left to calibration.
                   .replica_rows = calibrates ? INT32_MAX : paying_rows(fssdp, moving, true, true),
                   .import_rows = 1,
                   .gather_hidden =
                       (int32_t)(first ? movement->gather_hidden_first : movement->gather_hidden),
                   .reduce_hidden =
                       (int32_t)(first ? movement->reduce_hidden_first : movement->reduce_hidden),
                   .gather_rows = paying_rows(fssdp, moving, true, false),
                   .reduce_rows = paying_rows(fssdp, moving, false, true)},
        .costs = {.row_compute = movement->row_compute,
                  .row_send = movement->row_send,
                  .chunk_send = movement->chunk_send,
                  .chunk_near = movement->chunk_near,
                  .grad_send = movement->grad_send,
                  .row_cross = movement->row_cross},
    };
}

bool hrt_forecast(struct hrt_fssdp *fssdp, int set, int64_t at) {
    const struct hrt_moving_set *moving = &fssdp->set[set];
    const struct hrt_moving_layer *layer = &moving->layer[at];
    const int64_t cells = fssdp->comm->size * moving->set->experts;
    const int64_t window = fssdp->movement->window, seen = layer->seen;
    const int64_t count = seen < window ? seen : window;
    if (count == 0) {
        const uint32_t *given = moving->set->forecast;
        if (given) {
            memcpy(fssdp->forecast, given + at * cells, (size_t)cells * sizeof *given);
        } else {
            memset(fssdp->forecast, 0, (size_t)cells * sizeof *fssdp->forecast);
        }
        return given;
    }
    for (int64_t i = 0; i < cells; i++) {
        uint64_t sum = 0;
        for (int64_t w = 0; w < count; w++) sum += layer->window[w * cells + i];
        fssdp->forecast[i] = (uint32_t)((sum + (uint64_t)count / 2) / (uint64_t)count);
    }
    return true;
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

// Makes `placed` of the layer its plan: who computes, who holds, and in which slots; replicas that have
// one keep it.
static void adopt(struct hrt_fssdp *fssdp, int set, int64_t at) {
    const struct hrt_moving_set *moving = &fssdp->set[set];
    struct hrt_moving_layer *layer = &moving->layer[at];
    const int32_t *owner = hrt_layer_owners(fssdp, set, at);
    hrt_plan_with_owners(&layer->plan, &layer->placed, owner);
    hrt_experts_place(fssdp->state->experts, set, at, &layer->placed);
    for (int32_t e = 0; e < layer->plan.experts; e++) take_slot(fssdp, moving, layer, owner, e);
}

void hrt_plan(struct hrt_fssdp *fssdp, int set, int64_t at) {
    const struct hrt_moving_set *moving = &fssdp->set[set];
    struct hrt_moving_layer *layer = &moving->layer[at];
    const bool exact = fssdp->policy->when == HPL_WHEN_EXACT;
    const struct hpl_loads loads = {
        .devices = fssdp->comm->size,
        .experts = (int32_t)moving->set->experts,
        .rows = exact ? hrt_experts_counts(fssdp->state->experts, set, at) : fssdp->forecast,
    };
    if (layer->prefetched) return;
    hrt_release_params(fssdp, set, at); // Of an evaluation, which has no backward to do it.
    layer->used = 0;
    memset(layer->slot, -1, (size_t)moving->set->experts * sizeof *layer->slot);
    if (fssdp->policy->when != HPL_WHEN_PERIODIC) {
        const struct hpl_problem problem = problem_of(fssdp, set, at, &loads);
        if (exact || hrt_forecast(fssdp, set, at) || fssdp->policy->from_shards) {
            hrt_planned(
                fssdp, set, at,
                hpl_place(fssdp->policy, &problem, &layer->placed, fssdp->share, &fssdp->work));
        } else {
            hrt_plan_of_owners(&layer->placed, problem.owner);
        }
    }
    adopt(fssdp, set, at);
}

enum hpl_status hrt_plan_nothing(struct hrt_fssdp *fssdp, int set) {
    const int64_t experts = fssdp->set[set].set->experts;
    const struct hpl_loads loads = {fssdp->comm->size, (int32_t)experts, fssdp->forecast};
    const struct hpl_problem problem = problem_of(fssdp, set, 0, &loads);
    memset(fssdp->forecast, 0, (size_t)(fssdp->comm->size * experts) * sizeof *fssdp->forecast);
    const enum hpl_status status = hpl_problem_check(&problem);
    if (status != HPL_OK) return status;
    return hpl_place(fssdp->policy, &problem, &fssdp->scratch, fssdp->share, &fssdp->work);
}

void hrt_place_anew(struct hrt_fssdp *fssdp, int set, int64_t at) {
    struct hrt_moving_layer *layer = &fssdp->set[set].layer[at];
    const struct hpl_loads loads = {fssdp->comm->size, layer->placed.experts, fssdp->forecast};
    struct hpl_problem problem = problem_of(fssdp, set, at, &loads);
    hrt_forecast(fssdp, set, at);
    problem.present = &layer->placed;
    hrt_planned(fssdp, set, at,
                hpl_place(fssdp->policy, &problem, &fssdp->scratch, fssdp->share, &fssdp->work));
    hrt_plan_copy(&layer->placed, &fssdp->scratch);
}

// The owners and, of every expert, those of `now` that `before` lacks: what still has to travel.
static void added_to(struct hpl_plan *added, const struct hpl_plan *before,
                     const struct hpl_plan *now, const int32_t *owner) {
    int32_t count = 0;
    added->experts = now->experts;
    for (int32_t e = 0; e < now->experts; e++) {
        int32_t b = before->first[e];
        added->first[e] = count;
        for (int32_t k = now->first[e]; k < now->first[e + 1]; k++) {
            const bool there = b < before->first[e + 1] && before->holder[b] == now->holder[k];
            b += there;
            if (!there || now->holder[k] == owner[e]) added->holder[count++] = now->holder[k];
        }
    }
    added->first[now->experts] = count;
}

void hrt_calibrate(struct hrt_fssdp *fssdp, int set, int64_t at) {
    const struct hrt_moving_set *moving = &fssdp->set[set];
    struct hrt_moving_layer *layer = &moving->layer[at];
    const enum hrt_calibrate calibrate = fssdp->movement->calibrate;
    if (!fssdp->policy->calibrates || calibrate == HRT_CALIBRATE_NEVER) return;
    const struct hpl_loads loads = {
        .devices = fssdp->comm->size,
        .experts = (int32_t)moving->set->experts,
        .rows = hrt_experts_counts(fssdp->state->experts, set, at),
    };
    struct hpl_problem problem = problem_of(fssdp, set, at, &loads);
    struct hpl_calibration result;
    problem.present = &layer->placed;
    hpl_calibration_terms(&problem);
    hrt_planned(fssdp, set, at,
                hpl_calibrate(&problem, fssdp->policy, fssdp->split,
                              calibrate == HRT_CALIBRATE_ALWAYS, &fssdp->scratch, fssdp->share,
                              &result, &fssdp->work));
    if (!result.taken) return;
    const int32_t *owner = hrt_layer_owners(fssdp, set, at);
    hrt_plan_copy(&layer->placed, &fssdp->scratch);
    added_to(&fssdp->scratch, &layer->plan, &layer->placed, owner);
    adopt(fssdp, set, at);
    hrt_planned(fssdp, set, at,
                hpl_schedule_gather(&fssdp->topology, owner, &fssdp->scratch,
                                    moving->slots.segments, &fssdp->schedule, &fssdp->work));
    hrt_move_start(fssdp, &fssdp->set[set].move[HRT_MOVE_ADDED],
                   &(struct hrt_moving){&fssdp->schedule, set, at, false});
}

// ---- rows

void hrt_divide(void *context, int set, int64_t layer, const struct hpl_plan *plan,
                const struct hpl_loads *loads, int32_t source, uint32_t *row) {
    struct hrt_fssdp *fssdp = context;
    const struct hpl_topology *topology = &fssdp->topology;
    const bool shared = fssdp->split == HPL_SPLIT_QUOTA,
               planned = fssdp->split == HPL_SPLIT_PLANNED;
    struct hpl_level level;
    if (shared && source == 0)
        hrt_planned(fssdp, set, layer,
                    hpl_share(topology, plan, loads, SLACK, fssdp->share, &level, &fssdp->work));
    if (shared || planned) {
        hrt_planned(fssdp, set, layer,
                    hpl_route(topology, plan, loads, fssdp->share, source, row, &fssdp->work));
    } else {
        hpl_route_even(topology, plan, loads, hpl_split_even(fssdp->split), source, row);
    }
}
