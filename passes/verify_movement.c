// verify-movement: proves that experts are read when they are there, and that slots suffice.
//
//   before, after   the same module
//
// Why      Movement has no values, so SSA says nothing about it. This pass runs @forward and then
//          @backward on paper, every layer and two waves, and keeps for each set and layer where its
//          replicas are. So loop edges that a start is moved over are run, not argued about. Where
//          replicas live for a step it runs a step of one iteration, and one of three: the first, one
//          between, and the last differ.
// Proves   1. a chunk is read, and its gradient added to, only between its await and its release
//          2. a started transfer was planned, and its chunks are awaited, reduced and released once
//          3. at no time are replicas of more layers held than the set's slot_layers says (each has
//             `slots`), nor gradients of more than grad_layers
//          4. counts of a layer are awaited once they are on their way; behind that come its calibration,
//             which is before its await, and its rows
//          5. nothing is held or under way at the end of a step, after which parameters change
//          6. a plan stays until its gradients have been reduced
// Needs    Loops over layers with known counts.
// Reports  The first operation that breaks a rule.
#include <stdlib.h>
#include <string.h>

#include "ir/accessors.h"
#include "lang/base/arena.h"
#include "lang/base/vec.h"
#include "passes/base/movement.h"
#include "passes/base/pass.h"
#include "passes/base/rewrite.h"
#include "passes/base/walk.h"

enum { WAVES = 2, ITERATIONS = 3, LAYERS_MAX = 10000 };

enum parameters { AT_OWNERS, COMING, HERE };
enum counts { NO_COUNTS, TOLD, KNOWN };
enum gradients { NO_GRADIENTS, SUMMED_HERE, UNDER_WAY, AT_OWNER };

struct layer_state {
    enum parameters parameters;
    enum gradients gradients;
    enum counts counts;
    bool planned;
    bool of_step;    // Its plan is that of a step.
    bool kept;       // Its parameters have been here since an iteration before.
    bool prefetched; // Planned and started, and its own plan and materialize have still to come.
};

struct set_state {
    MlirOperation op;
    int64_t layers, slot_layers, grad_layers;
    struct layer_state *layer;
    bool trained;         // Some parameter of its experts.
    int64_t held, summed; // Layers with replicas, and with gradients of replicas.
};

// The parameters of a set in one layer, for which a value stands.
struct value_state {
    int64_t layer;
    struct set_state *set;
};

struct run {
    struct hec_arena arena;
    MlirOperation module;
    HEC_VEC(struct set_state *) sets;
    struct hec_map values; // Value -> struct value_state
    struct hec_walk walk;
    bool backward, first, last; // Iteration of its step.
    bool of_step;               // Something is done once in a step.
};

static void fault(struct run *r, MlirOperation op, const struct set_state *set, int64_t layer,
                  const char *text) {
    const MlirStringRef name = hec_any_sym_name(set->op);
    hec_ir_error(op, "%s (experts of @%.*s, layer %" PRId64 ")", text, (int)name.length, name.data,
                 layer);
    r->walk.stop = true;
}

// ---- values

static void put(struct run *r, MlirValue v, int64_t layer, struct set_state *set) {
    struct value_state *state = HEC_NEW(&r->arena, struct value_state);
    *state = (struct value_state){layer, set};
    hec_map_put(&r->values, v, state);
}

static const struct value_state *get(const struct run *r, MlirValue v) {
    return hec_map_find(&r->values, v);
}

static struct set_state *set_of(struct run *r, MlirStringRef name) {
    for (int i = 0; i < r->sets.count; i++) {
        struct set_state *set = r->sets.item[i];
        if (mlirStringRefEqual(hec_any_sym_name(set->op), name)) return set;
    }
    return NULL;
}

// The layer an operation is keyed with.
static int64_t layer_of(const struct run *r, MlirOperation op) {
    const MlirValue layer = hec_layer_of(op);
    return mlirValueIsNull(layer) ? 0 : hec_walk_number(&r->walk, layer);
}

// ---- movement

// Whether the operation is done in this iteration: of those of a step, starts in the first, ends in the last.
static bool is_done(const struct run *r, MlirOperation op) {
    if (!hec_is_of_step(op)) return true;
    const bool ends = hec_op_is(op, HEC_OP_reduce) || hec_op_is(op, HEC_OP_release);
    return ends ? r->last : r->first;
}

static int64_t ahead_of(MlirOperation op) {
    return hec_any_has_ahead(op) ? hec_any_ahead(op) : 0;
}

static void take_slots(struct run *r, MlirOperation op, struct set_state *set, int64_t layer) {
    struct layer_state *state = &set->layer[layer];
    if (state->parameters != AT_OWNERS) {
        fault(r, op, set, layer, "starts what was started and not released");
    } else if (set->held == set->slot_layers) {
        fault(r, op, set, layer, "starts while every slot is taken");
    } else {
        state->parameters = COMING;
        set->held++;
    }
}

// Prefetches the next layer; in another wave it is there already.
static void run_prefetch(struct run *r, MlirOperation op, struct set_state *set, int64_t layer) {
    if (layer >= set->layers || set->layer[layer].prefetched) return;
    if (r->backward || set->layer[layer].planned) {
        fault(r, op, set, layer, "prefetches what was planned, or in @backward");
        return;
    }
    take_slots(r, op, set, layer);
    set->layer[layer].planned = set->layer[layer].prefetched = true;
    set->layer[layer].of_step = hec_is_of_step(op);
}

static void run_materialize(struct run *r, MlirOperation op, struct set_state *set, int64_t layer) {
    layer -= ahead_of(op);
    if (layer < 0 || layer >= set->layers) return;
    struct layer_state *state = &set->layer[layer];
    if (state->prefetched && !r->backward) {
        state->prefetched = false;
    } else if (!state->planned) {
        fault(r, op, set, layer, "starts what was not planned");
    } else if (hec_any_rematerialize(op) != r->backward) {
        fault(r, op, set, layer,
              r->backward ? "is not marked `rematerialize`" : "is marked `rematerialize`");
    } else {
        take_slots(r, op, set, layer);
    }
}

static void run_release(struct run *r, MlirOperation op, struct set_state *set, int64_t layer) {
    layer -= ahead_of(op);
    if (layer < 0 || layer >= set->layers) return;
    struct layer_state *state = &set->layer[layer];
    if (mlirStringRefEqual(hec_any_what(op), HEC_STR("parameters"))) {
        if (state->parameters != HERE) {
            fault(r, op, set, layer, "releases parameters that are not here");
            return;
        }
        state->parameters = AT_OWNERS;
        set->held--;
    } else if (state->gradients != UNDER_WAY) {
        fault(r, op, set, layer, "releases gradients that are not being reduced");
    } else {
        state->gradients = AT_OWNER;
        set->summed--;
    }
}

static void run_plan(struct run *r, MlirOperation op, struct set_state *set, int64_t layer) {
    struct layer_state *state = &set->layer[layer];
    if (r->backward || (state->planned && !state->prefetched)) {
        fault(r, op, set, layer, "plans twice in one iteration");
    } else if (state->parameters != AT_OWNERS && !state->prefetched) {
        fault(r, op, set, layer, "plans while replicas of the plan before are here");
    } else if (state->gradients != NO_GRADIENTS) {
        fault(r, op, set, layer,
              "plans while gradients of the plan before are not at their owners");
    }
    state->planned = true;
    state->of_step = hec_is_of_step(op);
}

// Counts of rows, and operations that need them.
static bool run_counts(struct run *r, MlirOperation op, struct set_state *set, int64_t layer) {
    struct layer_state *state = &set->layer[layer];
    switch (hec_op_of(op)) {
    case HEC_OP_exchange:
        state->counts = TOLD;
        return true;
    case HEC_OP_await_counts:
        if (state->counts == NO_COUNTS)
            fault(r, op, set, layer, "awaits counts before their exchange");
        state->counts = KNOWN;
        return true;
    case HEC_OP_dispatch:
        if (state->counts != KNOWN)
            fault(r, op, set, layer, "sends rows before their counts are known");
        return true;
    case HEC_OP_calibrate:
        if ((state->parameters != COMING && !state->kept) || state->counts != KNOWN)
            fault(r, op, set, layer, "is not between the exchange of counts and the await");
        state->parameters = COMING; // Those that are added.
        return true;
    default:
        return false;
    }
}

static bool is_movement(enum hec_op id) {
    return id == HEC_OP_plan || id == HEC_OP_materialize || id == HEC_OP_prefetch ||
           id == HEC_OP_calibrate || id == HEC_OP_await || id == HEC_OP_reduce ||
           id == HEC_OP_release || id == HEC_OP_exchange || id == HEC_OP_await_counts ||
           id == HEC_OP_dispatch;
}

static bool run_movement(struct run *r, MlirOperation op) {
    const enum hec_op id = hec_op_of(op);
    if (!is_movement(id)) return false;
    r->of_step |= hec_is_of_step(op);
    if (!is_done(r, op)) return true;
    struct set_state *set = set_of(r, hec_any_set(op));
    if (!set) return true;
    const int64_t layer = layer_of(r, op);
    if (layer < 0 || layer >= set->layers) {
        fault(r, op, set, layer, "names a layer that the set does not have");
        return true;
    }
    if (run_counts(r, op, set, layer)) return true;
    struct layer_state *state = &set->layer[layer];
    if (id == HEC_OP_plan) {
        run_plan(r, op, set, layer);
    } else if (id == HEC_OP_materialize) {
        run_materialize(r, op, set, layer);
    } else if (id == HEC_OP_prefetch) {
        run_prefetch(r, op, set, layer + 1);
    } else if (id == HEC_OP_await) {
        if (state->parameters != COMING && !state->kept)
            fault(r, op, set, layer, "awaits what was not started");
        state->parameters = HERE;
        state->kept = false;
    } else if (id == HEC_OP_reduce) {
        const bool none = state->gradients == NO_GRADIENTS && !set->trained; // Zeros.
        set->summed += none;
        if (state->gradients != SUMMED_HERE && !none)
            fault(r, op, set, layer, "reduces gradients that nobody computed, or twice");
        state->gradients = UNDER_WAY;
    } else {
        run_release(r, op, set, layer);
    }
    return true;
}

// ---- reads

// The set whose experts have the parameter that `op` names, and the layer; NULL: none has.
static struct set_state *set_of_param(struct run *r, MlirOperation op, int64_t *layer) {
    const MlirOperation param = hec_find_symbol(r->module, hec_any_param(op));
    if (!param.ptr || !hec_param_has_set(param)) return NULL;
    struct set_state *set = set_of(r, hec_param_set(param));
    if (!set) return NULL;
    *layer = layer_of(r, op);
    if (*layer >= 0 && *layer < set->layers) return set;
    fault(r, op, set, *layer, "names a layer that the set does not have");
    return NULL;
}

static void run_accumulate(struct run *r, MlirOperation op) {
    int64_t layer;
    struct set_state *set = set_of_param(r, op, &layer);
    if (!set) return;
    struct layer_state *state = &set->layer[layer];
    if (state->parameters != HERE) {
        fault(r, op, set, layer, "adds to gradients of experts that are not here");
    } else if (state->gradients == UNDER_WAY || state->gradients == AT_OWNER) {
        fault(r, op, set, layer, "adds to gradients behind their reduce");
    } else if (state->gradients == NO_GRADIENTS) {
        if (set->summed == set->grad_layers)
            fault(r, op, set, layer, "adds to gradients while other layers' fill the slots");
        set->summed++;
        state->gradients = SUMMED_HERE;
    }
}

static void run_plain(struct run *r, MlirOperation op) {
    for (int i = 0; i < mlirOperationGetNumOperands(op) && !r->walk.stop; i++) {
        const struct value_state *state = get(r, hec_operand(op, i));
        if (!state || !state->set || state->set->layer[state->layer].parameters == HERE) continue;
        fault(r, op, state->set, state->layer,
              "reads experts before their await, or when released");
    }
    if (hec_op_is(op, HEC_OP_accumulate) && !r->walk.stop) run_accumulate(r, op);
    int64_t layer;
    struct set_state *set = hec_op_is(op, HEC_OP_get) ? set_of_param(r, op, &layer) : NULL;
    if (set) put(r, hec_result(op, 0), layer, set);
}

// ---- the walk

static void run_op(struct hec_walk *walk, MlirOperation op) {
    struct run *r = walk->domain;
    if (!run_movement(r, op)) run_plain(r, op);
}

// Leaves to the next iteration of the step: plans of a step, parameters that are here, and sums of gradients.
static void end_iteration(struct run *r) {
    for (int i = 0; i < r->sets.count; i++) {
        for (int64_t layer = 0; layer < r->sets.item[i]->layers; layer++) {
            struct layer_state *state = &r->sets.item[i]->layer[layer];
            state->planned &= state->of_step;
            state->counts = NO_COUNTS;
            state->kept = state->parameters == HERE;
            if (state->gradients == AT_OWNER) state->gradients = NO_GRADIENTS;
        }
    }
}

static void check_end(struct run *r, MlirOperation func) {
    for (int i = 0; i < r->sets.count && !r->walk.stop; i++) {
        struct set_state *set = r->sets.item[i];
        for (int64_t layer = 0; layer < set->layers && !r->walk.stop; layer++) {
            struct layer_state *state = &set->layer[layer];
            if (state->parameters != AT_OWNERS) {
                fault(r, func, set, layer, "ends with parameters that were not released");
            } else if (state->planned && set->trained && state->gradients != AT_OWNER) {
                fault(r, func, set, layer, "ends with gradients that did not reach their owners");
            }
            *state = (struct layer_state){0};
        }
    }
}

static void run_step(struct run *r, int iterations) {
    const MlirOperation backward = hec_find_symbol(r->module, HEC_STR("backward"));
    for (int i = 0; i < iterations && !r->walk.stop; i++) {
        if (i) end_iteration(r);
        r->first = i == 0, r->last = i + 1 == iterations;
        r->backward = false;
        hec_walk_func(&r->walk, r->module, "forward");
        r->backward = true;
        hec_walk_func(&r->walk, r->module, "backward");
    }
    if (hec_op_is(backward, HEC_OP_FUNC)) check_end(r, backward);
}

// Where all are frozen no gradient is computed.
static bool is_trained(const struct hec_ops *ops, MlirOperation set) {
    for (int k = 0; k < ops->count; k++) {
        if (hec_op_is(ops->op[k], HEC_OP_param) && hec_param_trainable(ops->op[k]) &&
            mlirStringRefEqual(hec_param_set(ops->op[k]), hec_any_sym_name(set)))
            return true;
    }
    return false;
}

static void find_sets(struct run *r) {
    const struct hec_ops ops = hec_ops_in(hec_module_body(r->module));
    for (int k = 0; k < ops.count; k++) {
        if (!hec_op_is(ops.op[k], HEC_OP_set)) continue;
        struct set_state *set = HEC_NEW(&r->arena, struct set_state);
        const int64_t layers = hec_any_layers(ops.op[k]);
        if (layers > LAYERS_MAX) {
            hec_ir_error(ops.op[k], "has more than %d layers", LAYERS_MAX);
            r->walk.stop = true;
            continue;
        }
        set->op = ops.op[k];
        set->trained = is_trained(&ops, set->op);
        set->layers = layers > 0 ? layers : 1;
        set->slot_layers = hec_any_has_slot_layers(set->op) ? hec_any_slot_layers(set->op) : 0;
        set->grad_layers = hec_any_has_grad_layers(set->op) ? hec_any_grad_layers(set->op) : 1;
        set->layer = hec_arena_alloc(&r->arena, (size_t)set->layers, sizeof *set->layer);
        HEC_PUSH(&r->arena, &r->sets, set);
    }
    free(ops.op);
}

static enum hec_pass_result run(MlirOperation module, const struct hec_pass_options *options) {
    (void)options;
    struct run r = {.module = module, .walk = {.waves = WAVES, .op = run_op}};
    r.walk.domain = &r;
    find_sets(&r);
    run_step(&r, 1);
    if (r.of_step) run_step(&r, ITERATIONS);
    const bool sound = !r.walk.stop;
    hec_walk_free(&r.walk);
    hec_map_free(&r.values);
    hec_arena_free(&r.arena);
    return sound ? HEC_PASS_DONE : HEC_PASS_REFUSED;
}

const struct hec_pass_code hec_pass_verify_movement = {
    .applies = hec_moves_experts,
    .run = run,
};
