// prove-placement: the homes are right, or the compiler stops.
//
//   before   a module that place-buffers has gone over, or text that claims to be one
//   after    the same
//
// Why      A wrong home is silent: the program trains on overwritten numbers. Liveness, sharing and
//          offsets are decided in several places; this checks what they add up to, and nothing else:
//          it reads only the attributes that codegen reads.
// Needs    homes on every operation with tensors, offsets on every slot.
// Leaves   the module as it is, and a certainty: on every run of @forward, then @backward, with all
//          layers, each operation finds its operands' last values where their homes are, no result
//          overlaps an operand except in place where the op table allows it, and observed slots hold
//          their values at the end.
// Reports  the first faults; they are internal errors, "an operand's bytes were overwritten".
#include <assert.h>
#include <stdlib.h>

#include "passes/pass.h"
#include "passes/place/place.h"

enum { FAULTS_MAX = 5 };

// The bytes [at, at + bytes) of the arena; `bytes` is 0 for homes elsewhere.
struct region {
    int64_t at, bytes;
};

// `id` names one making of one value; a loop makes a new one in each layer.
struct token {
    struct region region;
    int64_t id;
};

struct proof {
    struct hec_arena arena;
    MlirOperation module;
    struct hec_map env;   // Tensor -> id of its current token; index -> its value plus 1.
    struct hec_map slots; // Name of a slot -> its moe.slot.
    struct hec_map saved; // First row of a slot -> array of ids, by row.
    HEC_VEC(struct token) memory;
    int64_t next_id, layer;
    int faults;
};

static void fault(struct proof *p, MlirOperation op, const char *text) {
    if (p->faults++ < FAULTS_MAX) hec_ir_error(op, "internal error: %s", text);
}

// ---- homes and regions

static const void *name_key(struct proof *p, MlirStringRef name) {
    return mlirIdentifierGet(mlirOperationGetContext(p->module), name).ptr;
}

static MlirOperation slot_of(struct proof *p, MlirStringRef name) {
    return (MlirOperation){(void *)hec_map_get(&p->slots, name_key(p, name))};
}

static bool row_region(struct proof *p, MlirOperation op, MlirStringRef name, int64_t row,
                       struct region *region) {
    const MlirOperation slot = slot_of(p, name);
    if (!slot.ptr || !hec_has_attr(slot, "offset") || !hec_has_attr(slot, "stride") ||
        !hec_has_attr(slot, "rows")) {
        fault(p, op, "a slot has no place");
        return false;
    }
    if (row < 0 || row >= hec_get_int(slot, "rows")) {
        fault(p, op, "a row lies outside its slot");
        return false;
    }
    region->at = hec_get_int(slot, "offset") + row * hec_get_int(slot, "stride");
    region->bytes = hec_type_bytes(hec_get_type(slot, "type"));
    return true;
}

static bool find_home(MlirValue v, struct hec_home *home) {
    if (mlirValueIsAOpResult(v)) {
        return hec_home_of(hec_defining(v), "home", (int)mlirOpResultGetResultNumber(v), home);
    }
    const MlirOperation parent = mlirBlockGetParentOperation(mlirBlockArgumentGetOwner(v));
    const int index = (int)mlirBlockArgumentGetArgNumber(v);
    const int before = hec_op_is(parent, HEC_OP_FOR) ? 1 : 0; // The loop's index has no home.
    return hec_home_of(parent, "argument_home", index - before, home);
}

// Where `v` lies at the current layer; no bytes when not in the arena.
static struct region region_of(struct proof *p, MlirOperation op, MlirValue v) {
    struct region region = {0};
    struct hec_home home;
    if (!find_home(v, &home) || home.kind == HEC_HOME_NONE) {
        fault(p, op, "a value has no home");
    } else if (home.kind == HEC_HOME_ARENA) {
        region = (struct region){home.at, hec_type_bytes(mlirValueGetType(v))};
    } else if (home.kind == HEC_HOME_SLOT) {
        const int64_t row = home.row == HEC_ROW_ONLY    ? 0
                            : home.row == HEC_ROW_FIXED ? home.at
                            : home.row == HEC_ROW_NEXT  ? p->layer + 1
                                                        : p->layer;
        row_region(p, op, home.symbol, row, &region);
        if (region.bytes && region.bytes != hec_type_bytes(mlirValueGetType(v)))
            fault(p, op, "a value lies in a slot of another size");
    }
    return region;
}

static bool is_overlap(struct region a, struct region b) {
    return a.bytes && b.bytes && a.at < b.at + b.bytes && b.at < a.at + a.bytes;
}

static bool is_same(struct region a, struct region b) {
    return a.at == b.at && a.bytes == b.bytes;
}

// ---- tokens

static void write_token(struct proof *p, struct region region, int64_t id) {
    if (!region.bytes) return;
    for (int i = p->memory.count - 1; i >= 0; i--) {
        if (is_overlap(p->memory.item[i].region, region))
            p->memory.item[i] = p->memory.item[--p->memory.count];
    }
    HEC_PUSH(&p->arena, &p->memory, (struct token){region, id});
}

static void expect_token(struct proof *p, MlirOperation op, struct region region, int64_t id,
                         const char *text) {
    if (!region.bytes) return;
    for (int i = 0; i < p->memory.count; i++) {
        if (is_same(p->memory.item[i].region, region) && p->memory.item[i].id == id) return;
    }
    fault(p, op, text);
}

static int64_t id_of(const struct proof *p, MlirValue v) {
    return hec_map_get(&p->env, v.ptr);
}

static void set_id(struct proof *p, MlirValue v, int64_t id) {
    *hec_map_at(&p->env, v.ptr) = id;
}

static void expect_value(struct proof *p, MlirOperation op, MlirValue v) {
    if (!mlirTypeIsARankedTensor(mlirValueGetType(v))) return;
    expect_token(p, op, region_of(p, op, v), id_of(p, v), "an operand's bytes were overwritten");
}

// ---- operations

static int64_t row_at(const struct proof *p, MlirOperation op, int operand) {
    if (mlirOperationGetNumOperands(op) <= operand) return 0;
    return id_of(p, hec_operand(op, operand)) - 1;
}

static intptr_t *saved_at(struct proof *p, MlirStringRef name, int64_t row) {
    const MlirOperation slot = slot_of(p, name);
    intptr_t *rows = hec_map_at(&p->saved, slot.ptr);
    if (!*rows) {
        const size_t count = (size_t)hec_get_int(slot, "rows");
        *rows = (intptr_t)hec_arena_alloc(&p->arena, count, sizeof(intptr_t));
    }
    return (intptr_t *)*rows + row;
}

static void run_stash(struct proof *p, MlirOperation op) {
    const MlirStringRef name = hec_get_string(op, "slot");
    const int64_t row = row_at(p, op, 1), id = id_of(p, hec_operand(op, 0));
    struct region region;
    if (!row_region(p, op, name, row, &region)) return;
    expect_token(p, op, region, id, "the stashed value is not in its slot");
    *saved_at(p, name, row) = id;
}

static void run_fetch(struct proof *p, MlirOperation op) {
    const MlirStringRef name = hec_get_string(op, "slot");
    const int64_t row = row_at(p, op, 0);
    struct region region;
    if (!row_region(p, op, name, row, &region)) return;
    if (!is_same(region, region_of(p, op, hec_result(op, 0))))
        fault(p, op, "a fetched value does not live in its slot");
    const int64_t id = *saved_at(p, name, row);
    set_id(p, hec_result(op, 0), id);
    expect_token(p, op, region, id, "a saved value was overwritten");
}

// A row may be written by what a loop carries, without a stash: the row after the last.
static void remember_row(struct proof *p, MlirValue v, int64_t id) {
    struct hec_home home;
    if (!find_home(v, &home) || home.kind != HEC_HOME_SLOT || home.row != HEC_ROW_NEXT) return;
    *saved_at(p, home.symbol, p->layer + 1) = id;
}

static void check_results(struct proof *p, MlirOperation op) {
    const int results = (int)mlirOperationGetNumResults(op);
    for (int r = 0; r < results; r++) {
        const MlirValue result = hec_result(op, r);
        const struct region made = region_of(p, op, result);
        for (int i = 0; i < r; i++) {
            if (is_overlap(made, region_of(p, op, hec_result(op, i))))
                fault(p, op, "two results overlap");
        }
        for (int i = 0; i < mlirOperationGetNumOperands(op); i++) {
            const MlirValue operand = hec_operand(op, i);
            if (!mlirTypeIsARankedTensor(mlirValueGetType(operand))) continue;
            const struct region read = region_of(p, op, operand);
            if (!is_overlap(made, read)) continue;
            if (!is_same(made, read) || !hec_may_share(op, operand, result))
                fault(p, op, "a result overlaps an operand");
        }
    }
}

static void run_plain(struct proof *p, MlirOperation op) {
    for (int i = 0; i < mlirOperationGetNumOperands(op); i++) {
        expect_value(p, op, hec_operand(op, i));
    }
    check_results(p, op);
    for (int r = 0; r < mlirOperationGetNumResults(op); r++) {
        const MlirValue result = hec_result(op, r);
        set_id(p, result, ++p->next_id);
        write_token(p, region_of(p, op, result), p->next_id);
        if (p->faults == 0) remember_row(p, result, p->next_id);
    }
}

static bool run_index(struct proof *p, MlirOperation op) {
    int64_t value;
    switch (hec_op_of(op)) {
    case HEC_OP_CONSTANT:
        value = hec_get_int(op, "value");
        break;
    case HEC_OP_ADDI:
        value = row_at(p, op, 0) + row_at(p, op, 1);
        break;
    case HEC_OP_SUBI:
        value = row_at(p, op, 0) - row_at(p, op, 1);
        break;
    default:
        return false;
    }
    set_id(p, hec_result(op, 0), value + 1);
    return true;
}

static void run_block(struct proof *p, MlirBlock block);

// What is carried needs no code: it has to lie where the next reader looks.
static void carry(struct proof *p, MlirOperation op, MlirValue to, int64_t id) {
    set_id(p, to, id);
    expect_token(p, op, region_of(p, op, to), id, "a carried value is not where it is read next");
}

static void run_loop(struct proof *p, MlirOperation op) {
    const struct hec_for loop = hec_for_of(op);
    const int64_t outer = p->layer;
    int64_t *id = hec_arena_alloc(&p->arena, (size_t)loop.carried, sizeof *id);
    for (int i = 0; i < loop.carried; i++) id[i] = id_of(p, hec_for_init(&loop, i));
    for (int64_t step = 0; step < loop.count && p->faults == 0; step++) {
        p->layer = loop.down ? loop.count - 1 - step : step;
        set_id(p, mlirBlockGetArgument(loop.body, 0), step + 1);
        for (int i = 0; i < loop.carried; i++) carry(p, op, hec_for_argument(&loop, i), id[i]);
        run_block(p, loop.body);
        for (int i = 0; i < loop.carried; i++) {
            expect_value(p, op, hec_for_yielded(&loop, i));
            id[i] = id_of(p, hec_for_yielded(&loop, i));
        }
    }
    p->layer = outer;
    for (int i = 0; i < loop.carried; i++) carry(p, op, hec_result(op, i), id[i]);
}

static void run_block(struct proof *p, MlirBlock block) {
    for (MlirOperation op = mlirBlockGetFirstOperation(block);
         !mlirOperationIsNull(op) && p->faults == 0; op = mlirOperationGetNextInBlock(op)) {
        switch (hec_op_of(op)) {
        case HEC_OP_FOR:
            run_loop(p, op);
            break;
        case HEC_OP_stash:
            run_stash(p, op);
            break;
        case HEC_OP_fetch:
            run_fetch(p, op);
            break;
        case HEC_OP_SCF_YIELD:
            break;
        default:
            if (!run_index(p, op)) run_plain(p, op);
        }
    }
}

static void check_observed(struct proof *p, MlirOperation slot) {
    const intptr_t *rows = (const intptr_t *)hec_map_get(&p->saved, slot.ptr);
    if (!rows || !hec_get_bool(slot, "observed")) return;
    for (int64_t row = 0; row < hec_get_int(slot, "rows"); row++) {
        struct region region;
        if (!rows[row] || !row_region(p, slot, hec_get_string(slot, "sym_name"), row, &region))
            continue;
        expect_token(p, slot, region, rows[row], "an observed slot was overwritten");
    }
}

bool hec_prove_placement(MlirOperation module) {
    static const char *const entry[] = {"forward", "backward"};
    struct proof p = {.module = module};
    struct hec_ops ops = hec_ops_in(hec_module_body(module));
    for (int k = 0; k < ops.count; k++) {
        if (!hec_op_is(ops.op[k], HEC_OP_slot)) continue;
        const void *key = name_key(&p, hec_get_string(ops.op[k], "sym_name"));
        *hec_map_at(&p.slots, key) = (intptr_t)ops.op[k].ptr;
    }
    for (int e = 0; e < 2; e++) {
        const MlirOperation func = hec_find_symbol(module, HEC_STR(entry[e]));
        if (hec_op_is(func, HEC_OP_FUNC)) run_block(&p, hec_func_body(func));
    }
    for (int k = 0; k < ops.count && p.faults == 0; k++) {
        if (hec_op_is(ops.op[k], HEC_OP_slot)) check_observed(&p, ops.op[k]);
    }
    free(ops.op);
    hec_map_free(&p.env);
    hec_map_free(&p.slots);
    hec_map_free(&p.saved);
    hec_arena_free(&p.arena);
    return p.faults == 0;
}

static enum hec_pass_result run(MlirOperation module, const struct hec_pass_options *options) {
    (void)options;
    return hec_prove_placement(module) ? HEC_PASS_DONE : HEC_PASS_BROKEN;
}

const struct hec_pass hec_pass_prove_placement = {
    .flag = "prove-placement",
    .summary = "Prove by simulation that no value is overwritten before it is read",
    .run = run,
};
