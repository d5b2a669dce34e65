// Places of units: where dense parameters that ranks have parts of come, and their gradients grow (dense = shard).
//
// Each symbol has two places for its parameters and two for its gradients, which its layers take in turn. Places
// that are never in use at once share memory, those of parameters among themselves and those of gradients likewise:
// the runtime keeps memory of gradients zero where none are.
//
// A walk of @forward and @backward says which are in use together: parameters from their gather to where they are
// forgotten, gradients from the first operation that adds to them until the next sum begins. The largest place is
// given first, each the lowest memory that is free of those that it meets. Another walk proves it.
#include <inttypes.h>
#include <stdlib.h>

#include "ir/accessors.h"
#include "passes/base/movement.h"
#include "passes/base/walk.h"
#include "passes/cost/held.h"
#include "passes/homes/homes.h"
#include "passes/homes/prove.h"
#include "runtime/plan/held.h"

enum { PARAMETERS, GRADIENTS, POOLS, TURNS = 2, EACH = POOLS * TURNS, COPY = 2 };

struct place {
    MlirOperation symbol;
    int64_t bytes, offset;
    bool here, leaving;
};

struct units {
    struct hec_arena arena;
    MlirOperation module;
    HEC_VEC(struct place) places; // EACH of every symbol.
    bool *meets;                  // [places][places] While they are found; NULL: places are proven.
    struct hec_walk walk;
};

// ---- the places

static int64_t bytes_of(const struct units *u, MlirOperation symbol, int pool) {
    const int64_t real = hec_held_element_bytes(u->module);
    if (hec_op_is(symbol, HEC_OP_param)) {
        const int64_t elements = hec_param_elements(symbol);
        const bool plain =
            pool == GRADIENTS ? hec_param_trainable(symbol) : !hec_param_copy_alone(symbol);
        const bool copy = pool == PARAMETERS && hec_param_rounded(symbol);
        return hpl_slot_bytes(plain * elements * real) + hpl_slot_bytes(copy * elements * COPY);
    }
    const int64_t elements = hec_set_experts(symbol) * hec_set_chunk_elements(symbol);
    bool copy = false;
    HEC_EACH_OF (op, hec_ops_in(hec_module_body(u->module)), HEC_OP_param)
        copy = copy || (hec_param_rounded(op) &&
                        mlirStringRefEqual(hec_any_set(op), hec_set_sym_name(symbol)));
    return hpl_slot_bytes(elements * real) +
           hpl_slot_bytes((copy && pool == PARAMETERS) * elements * COPY);
}

static int find(const struct units *u, MlirOperation symbol) {
    for (int i = 0; symbol.ptr && i < u->places.count; i += EACH) {
        if (mlirOperationEqual(u->places.item[i].symbol, symbol)) return i;
    }
    return -1;
}

static int64_t layers_of(MlirOperation symbol) {
    const int64_t layers = hec_any_layers(symbol);
    return layers > 0 ? layers : 1;
}

static void find_places(struct units *u) {
    HEC_EACH_OF (op, hec_ops_in(hec_module_body(u->module)), HEC_OP_param) {
        const MlirOperation symbol = hec_dense_symbol(u->module, hec_any_sym_name(op));
        if (!symbol.ptr || find(u, symbol) >= 0) continue;
        for (int i = 0; i < EACH; i++) {
            const bool taken = i % TURNS < layers_of(symbol);
            const struct place place = {.symbol = symbol,
                                        .bytes = taken ? bytes_of(u, symbol, i / TURNS) : 0};
            HEC_PUSH(&u->arena, &u->places, place);
        }
    }
}

// ---- the walk

static void begin(struct units *u, MlirOperation op, int index) {
    struct place *place = &u->places.item[index];
    if (place->here || u->walk.stop) return;
    for (int i = 0; i < u->places.count; i++) {
        const struct place *other = &u->places.item[i];
        if (!other->here) continue;
        if (u->meets) {
            u->meets[i * u->places.count + index] = u->meets[index * u->places.count + i] = true;
        } else if (place->offset < other->offset + other->bytes &&
                   other->offset < place->offset + place->bytes) {
            const MlirStringRef name = hec_any_sym_name(other->symbol);
            hec_ir_error(op, "homes: a unit comes to memory in use (@%.*s)", (int)name.length,
                         name.data);
            u->walk.stop = true;
        }
    }
    place->here = true;
}

static int64_t layer_of(const struct units *u, MlirOperation op) {
    const MlirValue layer = hec_layer_of(op);
    if (!layer.ptr) return 0;
    const MlirOperation made = hec_defining(layer);
    if (made.ptr && hec_op_is(made, HEC_OP_CONSTANT)) return hec_get_int(made, "value");
    return hec_walk_number(&u->walk, layer);
}

// The gradients whose sum was under way have left.
static void land(struct units *u) {
    for (int i = 0; i < u->places.count; i++) {
        struct place *place = &u->places.item[i];
        place->here = place->here && !place->leaving;
        place->leaving = false;
    }
}

static void run_movement(struct units *u, MlirOperation op) {
    const MlirAttribute names = mlirOperationGetAttributeByName(op, HEC_STR("params"));
    const int64_t layer = layer_of(u, op) - (hec_any_has_ahead(op) ? hec_any_ahead(op) : 0);
    if (hec_op_is(op, HEC_OP_reduce_scatter)) land(u);
    for (intptr_t i = 0; i < mlirArrayAttrGetNumElements(names); i++) {
        const MlirStringRef name = mlirStringAttrGetValue(mlirArrayAttrGetElement(names, i));
        const MlirOperation symbol = hec_find_symbol(u->module, name);
        const int first = find(u, symbol);
        if (first < 0 || layer < 0 || layer >= layers_of(symbol)) continue;
        const int at = first + (int)(layer % TURNS);
        if (hec_op_is(op, HEC_OP_all_gather)) begin(u, op, at + PARAMETERS * TURNS);
        if (hec_op_is(op, HEC_OP_forget) && !hec_forget_kept(op))
            u->places.item[at + PARAMETERS * TURNS].here = false;
        if (hec_op_is(op, HEC_OP_reduce_scatter))
            u->places.item[at + GRADIENTS * TURNS].leaving = true;
    }
}

static void grow(struct units *u, MlirOperation accumulate) {
    const int first = find(u, hec_dense_symbol(u->module, hec_any_param(accumulate)));
    if (first >= 0)
        begin(u, accumulate, first + GRADIENTS * TURNS + (int)(layer_of(u, accumulate) % TURNS));
}

static void run_op(struct hec_walk *walk, MlirOperation op) {
    struct units *u = walk->domain;
    const enum hec_op id = hec_op_of(op);
    if (id == HEC_OP_all_gather || id == HEC_OP_forget || id == HEC_OP_reduce_scatter)
        run_movement(u, op);
    if (id == HEC_OP_accumulate) grow(u, op);
    for (int i = 0; i < mlirOperationGetNumResults(op); i++) { // It may write to the gradient.
        HEC_EACH_USE (use, hec_result(op, i)) {
            const MlirOperation user = mlirOpOperandGetOwner(use);
            if (hec_op_is(user, HEC_OP_accumulate)) grow(u, user);
        }
    }
}

// At the end of a function the sums under way are waited for.
static bool walk_all(struct units *u) {
    static const char *const functions[] = {"forward", "backward"};
    u->walk = (struct hec_walk){.waves = 1, .domain = u, .op = run_op};
    for (int i = 0; i < 2 && !u->walk.stop; i++) {
        hec_walk_func(&u->walk, u->module, functions[i]);
        for (int k = 0; k < u->places.count; k++)
            u->places.item[k].here = u->places.item[k].leaving = false;
    }
    hec_walk_free(&u->walk);
    return !u->walk.stop;
}

// ---- memory

// The lowest memory of the pool that is free of all that were given one and that it meets.
static int64_t lowest(const struct units *u, int index, const bool *given) {
    const int count = u->places.count;
    int64_t at = 0;
    for (int i = 0; i < count; i++) {
        const struct place *other = &u->places.item[i];
        const bool meets = given[i] && u->meets[index * count + i];
        if (!meets || other->offset >= at + u->places.item[index].bytes ||
            at >= other->offset + other->bytes)
            continue;
        at = other->offset + other->bytes;
        i = -1; // Those before may be in the way now.
    }
    return at;
}

// Returns the bytes of the pool.
static int64_t give(struct units *u, int pool) {
    const int count = u->places.count;
    bool *given = hec_arena_alloc(&u->arena, (size_t)count + 1, sizeof *given);
    int64_t all = 0;
    for (;;) {
        int next = -1;
        for (int i = 0; i < count; i++) {
            const struct place *place = &u->places.item[i];
            if (i % EACH / TURNS == pool && !given[i] && place->bytes > 0 &&
                (next < 0 || place->bytes > u->places.item[next].bytes))
                next = i;
        }
        if (next < 0) return all;
        struct place *place = &u->places.item[next];
        place->offset = lowest(u, next, given);
        given[next] = true;
        if (place->offset + place->bytes > all) all = place->offset + place->bytes;
    }
}

static void write(struct units *u, const int64_t *base) {
    const MlirContext c = mlirOperationGetContext(u->module);
    for (int i = 0; i < u->places.count; i += EACH) {
        MlirAttribute offset[EACH];
        for (int k = 0; k < EACH; k++)
            offset[k] = mlirIntegerAttrGet(mlirIntegerTypeGet(c, 64),
                                           base[k / TURNS] + u->places.item[i + k].offset);
        hec_any_put_unit_places(u->places.item[i].symbol, mlirArrayAttrGet(c, EACH, offset));
    }
    hec_module_put_unit_bytes(u->module, base[POOLS]);
}

void hec_homes_units(MlirOperation module) {
    struct units u = {.module = module};
    if (!hec_shards_dense(module)) return;
    find_places(&u);
    u.meets = hec_arena_alloc(&u.arena, (size_t)u.places.count * (size_t)u.places.count + 1,
                              sizeof *u.meets);
    walk_all(&u);
    int64_t base[POOLS + 1] = {0};
    for (int pool = 0; pool < POOLS; pool++) base[pool + 1] = base[pool] + give(&u, pool);
    write(&u, base);
    hec_arena_free(&u.arena);
}

// ---- the proof

static bool read_places(struct units *u) {
    for (int i = 0; i < u->places.count; i++) {
        struct place *place = &u->places.item[i];
        const MlirAttribute all =
            mlirOperationGetAttributeByName(place->symbol, HEC_STR("unit_places"));
        if (mlirAttributeIsNull(all) || !mlirAttributeIsAArray(all) ||
            mlirArrayAttrGetNumElements(all) != EACH)
            return hec_ir_error(place->symbol,
                                "homes: a unit has no place: run place-buffers first");
        place->offset = mlirIntegerAttrGetValueInt(mlirArrayAttrGetElement(all, i % EACH));
        if (place->bytes && (place->offset < 0 || place->offset % HPL_SLOT_ALIGN ||
                             place->offset > hec_module_unit_bytes(u->module) - place->bytes))
            return hec_ir_error(place->symbol, "homes: a unit lies outside of its memory");
    }
    return true;
}

bool hec_prove_units(MlirOperation module) {
    struct units u = {.module = module};
    if (!hec_shards_dense(module) || !hec_module_has_unit_bytes(module)) return true;
    find_places(&u);
    const bool sound = read_places(&u) && walk_all(&u);
    hec_arena_free(&u.arena);
    return sound;
}
