// From the placed module to the list: loops over layers are run, those over waves are marked.
#include "passes/timeline/script.h"

#include <stdio.h>
#include <string.h>

#include "ir/accessors.h"
#include "ir/core/setting.h"
#include "lang/base/vec.h"
#include "passes/base/movement.h"
#include "passes/base/rewrite.h"
#include "passes/base/walk.h"

// A gather of dense parameters: those of an attribute, which MLIR keeps once, of one layer.
struct gather {
    const void *params;
    int64_t layer;
};

struct writer {
    MlirOperation module;
    const struct hec_costs *costs;
    struct hec_arena *arena;
    struct hec_script *script;
    int room;
    bool back;
    int64_t most;          // Steps of a loop over layers.
    struct hec_map number; // Index value -> its number plus 1.
    int64_t layer;
    HEC_VEC(struct gather) gathers; // In the order of their numbers.
};

static struct hec_action *append(struct writer *w, enum hec_act act) {
    struct hec_script *s = w->script;
    if (s->count == w->room) {
        const int room = w->room ? 2 * w->room : 1024;
        struct hec_action *more = hec_arena_alloc(w->arena, (size_t)room, sizeof *more);
        if (s->count) memcpy(more, s->action, (size_t)s->count * sizeof *more);
        s->action = more;
        w->room = room;
    }
    struct hec_action *a = &s->action[s->count++];
    *a = (struct hec_action){.act = act, .set = -1, .back = w->back};
    return a;
}

static int find_set(const struct writer *w, MlirStringRef name) {
    for (int i = 0; i < w->costs->count; i++) {
        const char *own = w->costs->set[i].name;
        if (strlen(own) == name.length && memcmp(own, name.data, name.length) == 0) return i;
    }
    return -1;
}

// Names the time: after a unit of the model, or "model" outside of all.
static void set_label(struct hec_action *a, MlirOperation op) {
    const MlirStringRef unit = hec_unit_name(op);
    const MlirStringRef name = unit.length ? unit : HEC_STR("model");
    snprintf(a->label, sizeof a->label, "%.*s", (int)name.length, name.data);
}

static void add_compute(struct writer *w, MlirOperation op) {
    const double us = hec_op_us(&w->costs->machine, op);
    if (us <= 0) return;
    struct hec_action next = {.act = HEC_ACT_COMPUTE, .back = w->back, .us = us};
    set_label(&next, op);
    struct hec_script *s = w->script;
    struct hec_action *last = s->count ? &s->action[s->count - 1] : NULL;
    if (last && last->act == HEC_ACT_COMPUTE && last->layer == (int32_t)w->layer &&
        strcmp(last->label, next.label) == 0) {
        last->us += us;
        return;
    }
    last = append(w, HEC_ACT_COMPUTE);
    *last = next;
    last->set = -1;
    last->layer = (int32_t)w->layer;
}

// ---- operations that move something

static int64_t number_of(const struct writer *w, MlirValue index) {
    const intptr_t known = hec_map_get(&w->number, index.ptr);
    return known ? known - 1 : 0;
}

// The layer that an operation names, less those that it is ahead; 0 of a set that has no layers.
static int64_t layer_of(const struct writer *w, MlirOperation op) {
    const MlirValue layer = hec_layer_of(op);
    return (layer.ptr ? number_of(w, layer) : 0) - (hec_any_has_ahead(op) ? hec_any_ahead(op) : 0);
}

static struct hec_action *append_of(struct writer *w, enum hec_act act, MlirOperation op) {
    struct hec_action *a = append(w, act);
    a->set = find_set(w, hec_any_set(op));
    a->layer = (int32_t)layer_of(w, op);
    a->last = hec_is_of_step(op) && (act == HEC_ACT_REDUCE || act == HEC_ACT_RELEASE);
    a->first = hec_is_of_step(op) && !a->last;
    return a;
}

static void add_gather(struct writer *w, MlirOperation op) {
    if (layer_of(w, op) < 0) return;
    append_of(w, HEC_ACT_GATHER, op)->again = hec_materialize_rematerialize(op);
}

static void add_release(struct writer *w, MlirOperation op) {
    if (!mlirStringRefEqual(hec_release_what(op), HEC_STR("gradients"))) return;
    const int64_t layer = layer_of(w, op);
    const int set = find_set(w, hec_any_set(op));
    if (set < 0 || layer < 0 || layer >= w->costs->set[set].layers) return;
    append_of(w, HEC_ACT_RELEASE, op);
}

static void add_prefetch(struct writer *w, MlirOperation op) {
    const int64_t next = layer_of(w, op) + 1;
    const int set = find_set(w, hec_any_set(op));
    if (set < 0 || next >= w->costs->set[set].layers) return;
    append_of(w, HEC_ACT_PREFETCH, op)->layer = (int32_t)next;
}

static void add_dense(struct writer *w, MlirOperation op) {
    struct hec_action *a = append(w, HEC_ACT_DENSE);
    a->bytes = hec_any_has_bytes(op) ? hec_any_bytes(op) : 0;
    a->last = !w->script->shard;
}

static MlirAttribute params_of(MlirOperation op) {
    return mlirOperationGetAttributeByName(op, HEC_STR("params"));
}

static MlirOperation symbol_at(const struct writer *w, MlirAttribute params, intptr_t i) {
    return hec_find_symbol(w->module, mlirStringAttrGetValue(mlirArrayAttrGetElement(params, i)));
}

static void add_unit(struct writer *w, MlirOperation op) {
    const MlirAttribute params = params_of(op);
    const MlirValue at = hec_all_gather_layer(op);
    const int64_t said = hec_any_layers(symbol_at(w, params, 0)), own = said ? said : 1,
                  layers = w->most > 0 && w->most < own ? w->most : own,
                  ahead = hec_any_has_ahead(op) ? hec_any_ahead(op) : 0;
    int64_t layer = layer_of(w, op);
    // A unit behind a loop starts in its last step but one, also where the loop is made shorter.
    if (said == 0 && w->most > 1 && ahead > w->most - 2) layer += ahead - (w->most - 2);
    if (at.ptr && (layer < 0 || layer >= layers)) {
        if (ahead) return;
        layer = layers - 1; // The first of a loop that goes down, which is made shorter.
    }
    HEC_PUSH(w->arena, &w->gathers, (struct gather){params.ptr, layer});
    struct hec_action *a = append(w, HEC_ACT_UNIT);
    a->layer = at.ptr && said ? (int32_t)layer : -1;
    a->unit = w->script->units++;
    for (intptr_t i = 0; i < mlirArrayAttrGetNumElements(params); i++)
        a->bytes += hec_gathered_bytes(symbol_at(w, params, i));
}

static void add_unit_await(struct writer *w, MlirOperation op) {
    const void *params = params_of(op).ptr;
    const MlirValue at = hec_await_gather_layer(op);
    const int64_t layer = layer_of(w, op);
    for (int i = w->gathers.count - 1; i >= 0; i--) {
        if (w->gathers.item[i].params != params || w->gathers.item[i].layer != layer) continue;
        struct hec_action *a = append(w, HEC_ACT_UNIT_AWAIT);
        a->layer = at.ptr ? (int32_t)layer : -1;
        a->unit = i;
        return;
    }
}

// Operations of a set that are an action of their own.
static const struct {
    enum hec_op op;
    enum hec_act act;
} moves[] = {
    {HEC_OP_plan, HEC_ACT_PLAN},
    {HEC_OP_calibrate, HEC_ACT_CALIBRATE},
    {HEC_OP_await, HEC_ACT_AWAIT},
    {HEC_OP_reduce, HEC_ACT_REDUCE},
    {HEC_OP_exchange, HEC_ACT_EXCHANGE},
    {HEC_OP_await_counts, HEC_ACT_COUNTS},
    {HEC_OP_dispatch, HEC_ACT_ROWS},
    {HEC_OP_give_back, HEC_ACT_RETURN},
    {HEC_OP_collect, HEC_ACT_COLLECT},
    {HEC_OP_dispatch_grad, HEC_ACT_ROWS},
    {HEC_OP_give_back_grad, HEC_ACT_RETURN},
    {HEC_OP_collect_grad, HEC_ACT_COLLECT},
};

static bool add_movement(struct writer *w, MlirOperation op) {
    const enum hec_op id = hec_op_of(op);
    for (size_t i = 0; i < sizeof moves / sizeof *moves; i++) {
        if (moves[i].op != id) continue;
        append_of(w, moves[i].act, op);
        return true;
    }
    switch (id) {
    case HEC_OP_materialize:
        add_gather(w, op);
        return true;
    case HEC_OP_prefetch:
        add_prefetch(w, op);
        return true;
    case HEC_OP_release:
        add_release(w, op);
        return true;
    case HEC_OP_all_reduce:
    case HEC_OP_reduce_scatter:
        add_dense(w, op);
        return true;
    case HEC_OP_all_gather:
        add_unit(w, op);
        return true;
    case HEC_OP_await_gather:
        add_unit_await(w, op);
        return true;
    default:
        return false;
    }
}

// ---- the program

static void write_block(struct writer *w, MlirBlock block);

// The operation that gives a loop's count: that of waves, or of overwritten ones.
static void write_waves(struct writer *w, const struct hec_for *loop) {
    const MlirOperation count = mlirOpResultGetOwner(loop->bound);
    const bool overwritten = hec_op_is(count, HEC_OP_overwritten);
    append_of(w, overwritten ? HEC_ACT_OVERWRITTEN : HEC_ACT_WAVES, count);
    const int begin = w->script->count - 1;
    write_block(w, loop->body);
    append(w, HEC_ACT_END);
    w->script->action[begin].end = w->script->count - 1;
}

static void write_loop(struct writer *w, MlirOperation op) {
    const struct hec_for loop = hec_for_of(op);
    if (loop.count == HEC_COUNT_AT_RUN_TIME) {
        write_waves(w, &loop);
        return;
    }
    const int64_t outer = w->layer;
    const int64_t count = w->most > 0 && w->most < loop.count ? w->most : loop.count;
    for (int64_t step = 0; step < count; step++) {
        w->layer = loop.down ? count - 1 - step : step;
        *hec_map_at(&w->number, mlirBlockGetArgument(loop.body, 0).ptr) = step + 1;
        write_block(w, loop.body);
    }
    w->layer = outer;
}

static bool is_index(struct writer *w, MlirOperation op) {
    int64_t number;
    switch (hec_op_of(op)) {
    case HEC_OP_CONSTANT:
        number = hec_get_int(op, "value");
        break;
    case HEC_OP_ADDI:
        number = number_of(w, hec_operand(op, 0)) + number_of(w, hec_operand(op, 1));
        break;
    case HEC_OP_SUBI:
        number = number_of(w, hec_operand(op, 0)) - number_of(w, hec_operand(op, 1));
        break;
    case HEC_OP_waves:
    case HEC_OP_overwritten:
        return true;
    default:
        return false;
    }
    *hec_map_at(&w->number, hec_result(op, 0).ptr) = number + 1;
    return true;
}

static void write_block(struct writer *w, MlirBlock block) {
    HEC_EACH_IN (op, block) {
        if (hec_op_is(op, HEC_OP_FOR)) {
            write_loop(w, op);
        } else if (!is_index(w, op) && !add_movement(w, op)) {
            add_compute(w, op);
        }
    }
}

static void write_func(struct writer *w, const char *name, bool back) {
    const MlirOperation func = hec_find_symbol(w->module, HEC_STR(name));
    w->back = back;
    w->layer = -1;
    if (hec_op_is(func, HEC_OP_FUNC)) write_block(w, hec_func_body(func));
}

// ---- the end of a step

// AdamW reads parameter, gradient and two moments and writes all but the gradient, and the gradient's norm is read
// before: eight times the elements go through memory, four of these times the moments'. Over the host's link they are
// read and written at a time; so are experts' parameters beside copies.
enum { OPTIMIZER_PASSES = 8, STATE_READS = 2 };

static void find_dense(struct writer *w) {
    HEC_EACH_OF (op, hec_ops_in(hec_module_body(w->module)), HEC_OP_param) {
        if (hec_any_has_set(op)) continue;
        const int64_t layers = hec_any_layers(op);
        w->script->dense_bytes += (layers > 0 ? layers : 1) * hec_type_bytes(hec_any_type(op));
    }
}

double hec_optimizer_us(const struct hec_machine *machine, double dense, double experts) {
    const double all = OPTIMIZER_PASSES * (dense + experts);
    if (!machine->states_on_host) return hec_loop_us(machine, all);
    const double reads = STATE_READS * (dense + experts) + (machine->masters_on_host ? experts : 0);
    const double here = hec_loop_us(machine, all - 2 * reads);
    const double there = 1e6 * reads / (hec_reached_of_link * machine->host_bandwidth);
    return here > there ? here : there;
}

static double optimizer_us(const struct writer *w) {
    const struct hec_costs *costs = w->costs;
    const struct hec_machine *m = &costs->machine;
    const double devices = (double)(m->nodes * m->devices);
    const double dense = (double)w->script->dense_bytes / (w->script->states ? devices : 1);
    double experts = 0;
    for (int i = 0; i < costs->count; i++) {
        const struct hec_set_cost *c = &costs->set[i];
        experts += (double)(c->layers * c->experts) / devices * (double)c->grad_bytes;
    }
    return hec_optimizer_us(m, dense, experts);
}

static void write_end(struct writer *w) {
    static const enum hec_act act[] = {HEC_ACT_SUMS, HEC_ACT_NORM, HEC_ACT_COMPUTE, HEC_ACT_PUBLISH,
                                       HEC_ACT_RESHARD};
    w->layer = -1;
    for (int i = 0; i < 5; i++) {
        if (act[i] == HEC_ACT_PUBLISH && (!w->script->states || w->script->shard)) continue;
        struct hec_action *a = append(w, act[i]);
        a->layer = -1;
        a->last = true;
        if (act[i] != HEC_ACT_COMPUTE) continue;
        a->us = optimizer_us(w);
        snprintf(a->label, sizeof a->label, "adamw");
    }
}

static bool has_no_set(const struct hec_action *a) {
    switch (a->act) {
    case HEC_ACT_COMPUTE:
    case HEC_ACT_END:
    case HEC_ACT_DENSE:
    case HEC_ACT_UNIT:
    case HEC_ACT_UNIT_AWAIT:
        return true;
    default:
        return a->act >= HEC_ACT_SUMS;
    }
}

static bool check_sets(const struct writer *w) {
    for (int i = 0; i < w->script->count; i++) {
        const struct hec_action *a = &w->script->action[i];
        if (has_no_set(a) || a->set >= 0) continue;
        return hec_ir_error(w->module, "moves experts of a set that it does not have");
    }
    return true;
}

// Layers of experts that are not left out.
static int64_t layers_left(const struct writer *w) {
    int64_t layers = 0;
    for (int i = 0; i < w->costs->count; i++) {
        const int64_t own = w->costs->set[i].layers;
        layers += w->most > 0 && w->most < own ? w->most : own;
    }
    return layers;
}

bool hec_script_of(MlirOperation module, const struct hec_costs *costs, int64_t layers,
                   struct hec_arena *arena, struct hec_script *script) {
    struct writer w = {
        .module = module, .costs = costs, .arena = arena, .script = script, .most = layers};
    *script = (struct hec_script){
        .iterations = hec_step_iterations(module, &costs->machine),
        .states = hec_shares_states(module),
        .shard = hec_shards_dense(module),
        .way = (double)hec_gradient_way_bytes(module, 2) / 2,
    };
    if (hec_has_ranks(module) && !script->shard)
        script->bucket = hec_setting_count(module, HEC_KEY_parallel_bucket, 0);
    write_func(&w, "forward", false);
    write_func(&w, "backward", true);
    find_dense(&w);
    write_end(&w);
    script->shortened = costs->count ? (double)hec_layers_of(costs) / (double)layers_left(&w) : 1;
    hec_map_free(&w.number);
    return check_sets(&w);
}
