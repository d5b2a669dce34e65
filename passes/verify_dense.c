// verify-dense: proves that dense parameters are read when they are there, and gradients leave complete.
//
//   before, after   the same module
//
// Why      Gathers have no values, so SSA says nothing about them. This pass runs @forward and then @backward on
//          paper, every layer, and keeps where each parameter is, and its gradient.
// Proves   1. a parameter is read between its await and its forget only
//          2. a started gather's parameter was absent, is awaited and forgotten once; none is left at the end
//          3. of two layers of a parameter that share a slot, layer modulo 2, one at most is here or on its way
//          4. no gradient is added to behind its reduce_scatter, and each that was added to has one
//          5. no operation reads a parameter as it is of which the copy comes alone
//          6. a gradient is added to when the sum of the one that was in its slot before is done: that of a bucket is
//             when the next bucket's begins
// Needs    Loops over layers with known counts.
// Reports  The first operation that breaks a rule.

#include "ir/accessors.h"
#include "lang/base/arena.h"
#include "lang/base/vec.h"
#include "passes/base/movement.h"
#include "passes/base/pass.h"
#include "passes/base/walk.h"

enum { WAVES = 2, LAYERS_MAX = 10000, SLOTS = 2 };

enum parameters { AWAY, COMING, HERE };
enum gradient { NONE, ADDED, LEAVING, LEFT };

struct layer_state {
    enum parameters parameters;
    enum gradient gradient;
};

struct symbol_state {
    MlirOperation op;
    int64_t layers;
    int64_t here[SLOTS], added[SLOTS]; // Layers whose parameters, or gradients, a slot has: 0 or 1.
    struct layer_state *layer;
};

struct run {
    struct hec_arena arena;
    MlirOperation module;
    HEC_VEC(struct symbol_state *) symbols;
    struct hec_walk walk;
};

static void fault(struct run *r, MlirOperation op, const struct symbol_state *symbol, int64_t layer,
                  const char *text) {
    const MlirStringRef name = hec_any_sym_name(symbol->op);
    hec_ir_error(op, "%s (@%.*s, layer %" PRId64 ")", text, (int)name.length, name.data, layer);
    r->walk.stop = true;
}

static struct symbol_state *find(const struct run *r, MlirOperation op) {
    for (int i = 0; op.ptr && i < r->symbols.count; i++) {
        if (mlirOperationEqual(r->symbols.item[i]->op, op)) return r->symbols.item[i];
    }
    return NULL;
}

static int64_t layer_of(const struct run *r, MlirOperation op) {
    const MlirValue layer = hec_layer_of(op);
    return layer.ptr ? hec_walk_number(&r->walk, layer) : 0;
}

// ---- movement

static void run_one(struct run *r, MlirOperation op, struct symbol_state *symbol, int64_t layer) {
    struct layer_state *state = &symbol->layer[layer];
    switch (hec_op_of(op)) {
    case HEC_OP_all_gather:
        if (state->parameters != AWAY)
            fault(r, op, symbol, layer, "gathers what was not forgotten");
        if (symbol->here[layer % SLOTS]++)
            fault(r, op, symbol, layer, "gathers into a slot in use");
        state->parameters = COMING;
        return;
    case HEC_OP_await_gather:
        if (state->parameters != COMING) fault(r, op, symbol, layer, "awaits what was not started");
        state->parameters = HERE;
        return;
    case HEC_OP_forget:
        if (state->parameters != HERE) fault(r, op, symbol, layer, "forgets what is not here");
        state->parameters = AWAY;
        symbol->here[layer % SLOTS]--;
        return;
    default:
        if (state->gradient != ADDED)
            fault(r, op, symbol, layer, "sums a gradient that nobody computed, or twice");
        state->gradient = LEAVING;
    }
}

// The bucket before has been summed when the next one starts.
static void land(struct run *r) {
    for (int i = 0; i < r->symbols.count; i++) {
        struct symbol_state *symbol = r->symbols.item[i];
        for (int64_t layer = 0; layer < symbol->layers; layer++) {
            if (symbol->layer[layer].gradient != LEAVING) continue;
            symbol->layer[layer].gradient = LEFT;
            symbol->added[layer % SLOTS]--;
        }
    }
}

static void run_movement(struct run *r, MlirOperation op) {
    const MlirAttribute names = mlirOperationGetAttributeByName(op, HEC_STR("params"));
    const int64_t ahead = hec_any_has_ahead(op) ? hec_any_ahead(op) : 0;
    const int64_t layer = layer_of(r, op) - ahead;
    if (hec_op_is(op, HEC_OP_reduce_scatter)) land(r);
    for (intptr_t i = 0; i < mlirArrayAttrGetNumElements(names) && !r->walk.stop; i++) {
        const MlirStringRef name = mlirStringAttrGetValue(mlirArrayAttrGetElement(names, i));
        struct symbol_state *symbol = find(r, hec_find_symbol(r->module, name));
        if (!symbol) {
            hec_ir_error(op, "names @%.*s, which ranks have no parts of", (int)name.length,
                         name.data);
            r->walk.stop = true;
        } else if (layer >= 0 && layer < symbol->layers) {
            run_one(r, op, symbol, layer);
        } else if (!ahead) {
            fault(r, op, symbol, layer, "names a layer that is not there");
        }
    }
}

// ---- reads and sums

static struct symbol_state *shared(struct run *r, MlirOperation op, int64_t *layer) {
    struct symbol_state *symbol = find(r, hec_dense_symbol(r->module, hec_any_param(op)));
    *layer = layer_of(r, op);
    if (!symbol || (*layer >= 0 && *layer < symbol->layers)) return symbol;
    fault(r, op, symbol, *layer, "names a layer that is not there");
    return NULL;
}

static void run_plain(struct run *r, MlirOperation op) {
    int64_t layer;
    for (int i = 0; i < mlirOperationGetNumOperands(op) && !r->walk.stop; i++) {
        const MlirOperation get = hec_defining(hec_operand(op, i));
        if (!get.ptr || !hec_op_is(get, HEC_OP_get)) continue;
        const struct symbol_state *symbol = shared(r, get, &layer);
        if (symbol && symbol->layer[layer].parameters != HERE)
            fault(r, op, symbol, layer, "reads a parameter before its await, or when forgotten");
        else if (symbol && hec_op_is(symbol->op, HEC_OP_param) &&
                 hec_param_copy_alone(symbol->op) &&
                 !hec_type_is_rounded(mlirValueGetType(hec_get_value(get))))
            fault(r, op, symbol, layer, "reads a parameter of which the copy comes alone");
    }
    if (!hec_op_is(op, HEC_OP_accumulate) || r->walk.stop) return;
    struct symbol_state *symbol = shared(r, op, &layer);
    if (!symbol) return;
    if (symbol->layer[layer].gradient > ADDED)
        fault(r, op, symbol, layer, "adds to a gradient behind its sum");
    if (symbol->layer[layer].gradient == ADDED) return;
    if (symbol->added[layer % SLOTS]++) fault(r, op, symbol, layer, "adds to a slot in use");
    symbol->layer[layer].gradient = ADDED;
}

static void run_op(struct hec_walk *walk, MlirOperation op) {
    struct run *r = walk->domain;
    switch (hec_op_of(op)) {
    case HEC_OP_all_gather:
    case HEC_OP_await_gather:
    case HEC_OP_forget:
    case HEC_OP_reduce_scatter:
        run_movement(r, op);
        return;
    default:
        run_plain(r, op);
    }
}

static void check_end(struct run *r, const char *name) {
    const MlirOperation func = hec_find_symbol(r->module, HEC_STR(name));
    for (int i = 0; i < r->symbols.count && !r->walk.stop; i++) {
        const struct symbol_state *symbol = r->symbols.item[i];
        for (int64_t layer = 0; layer < symbol->layers && !r->walk.stop; layer++) {
            if (symbol->layer[layer].parameters != AWAY)
                fault(r, func, symbol, layer, "ends with parameters that were not forgotten");
            else if (symbol->layer[layer].gradient == ADDED)
                fault(r, func, symbol, layer, "ends with a gradient that was not summed");
        }
    }
}

static void find_symbols(struct run *r) {
    HEC_EACH_OF (each, hec_ops_in(hec_module_body(r->module)), HEC_OP_param) {
        if (r->walk.stop) break;
        const MlirOperation op = hec_dense_symbol(r->module, hec_any_sym_name(each));
        if (!op.ptr || find(r, op)) continue;
        const int64_t layers = hec_any_layers(op) > 0 ? hec_any_layers(op) : 1;
        if (layers > LAYERS_MAX) {
            hec_ir_error(op, "has more than %d layers", LAYERS_MAX);
            r->walk.stop = true;
            continue;
        }
        struct symbol_state *symbol = HEC_NEW(&r->arena, struct symbol_state);
        *symbol = (struct symbol_state){.op = op, .layers = layers};
        symbol->layer = hec_arena_alloc(&r->arena, (size_t)layers, sizeof *symbol->layer);
        HEC_PUSH(&r->arena, &r->symbols, symbol);
    }
}

static enum hec_pass_result run(MlirOperation module, const struct hec_pass_options *options) {
    static const char *const functions[] = {"forward", "backward"};
    struct run r = {.module = module, .walk = {.waves = WAVES, .op = run_op}};
    (void)options;
    r.walk.domain = &r;
    find_symbols(&r);
    for (int i = 0; i < 2 && !r.walk.stop; i++) {
        const MlirOperation func = hec_find_symbol(module, HEC_STR(functions[i]));
        if (!hec_op_is(func, HEC_OP_FUNC)) continue;
        hec_walk_func(&r.walk, module, functions[i]);
        check_end(&r, functions[i]);
    }
    const bool sound = !r.walk.stop;
    hec_walk_free(&r.walk);
    hec_arena_free(&r.arena);
    return sound ? HEC_PASS_DONE : HEC_PASS_REFUSED;
}

const struct hec_pass_code hec_pass_verify_dense = {
    .applies = hec_shards_dense,
    .run = run,
};
