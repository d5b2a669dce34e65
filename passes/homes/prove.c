// prove-homes: the homes are right, or the compiler stops.
//
//   before   a module that place-buffers has gone over, or text that claims to be one
//   after    the same
//
// Why      A wrong home is silent: the program trains on overwritten numbers. Liveness, sharing and
//          offsets are decided in several places; this checks what they add up to, and nothing
//          else: it reads only the attributes that codegen reads.
// Needs    homes on every operation with tensors, offsets on every slot.
// Leaves   the module as it is, and a certainty: on every run of @forward, then @backward, with all
//          layers, each operation finds its operands' last values where their homes are, no result
//          overlaps an operand except in place where the op table allows it, and observed slots
//          hold their values when @forward has ended; nothing of @forward overwrites the slots whose values
//          the next @forward reads (`kept`). Parameters lie apart, with room for theirs.
// Reports  the first faults; "homes: an operand's bytes were overwritten".
#include <stdlib.h>
#include <string.h>

#include "ir/accessors.h"
#include "ir/core/kernel.h"
#include "passes/base/pass.h"
#include "passes/base/rewrite.h"
#include "passes/base/walk.h"
#include "passes/homes/homes.h"
#include "passes/homes/prove.h"
#include "passes/homes/prove_params.h"

enum { FAULTS_MAX = 5, ROWS_MAX = 1 << 20 };

// The bytes [at, at + bytes) of the arena; `bytes` is 0 for homes elsewhere.
struct region {
    int64_t at, bytes;
};

// `id` names one making of one value; a loop makes a new one in each layer.
struct token {
    struct region region;
    int64_t id;
};

// A slot by its attributes, and the value in each row.
struct rows {
    MlirOperation op;
    int64_t offset, stride, count, bytes;
    int64_t *saved; // Id by row; 0: nothing yet.
};

// Where a value lives, read once.
struct spot {
    struct hec_home home;
    struct rows *rows; // When in a slot.
    int64_t bytes;
};

struct proof {
    struct hec_arena arena;
    MlirOperation module;
    const struct hec_target *target;
    struct hec_map env;   // Tensor -> id of its current token.
    struct hec_map slots; // Name of a slot -> struct rows.
    struct hec_map spots; // Value -> struct spot.
    struct hec_map users; // Stash or fetch -> struct rows.
    HEC_VEC(struct token) memory;
    HEC_VEC(int64_t) carried; // Ids on the edge of a loop.
    HEC_VEC(const struct rows *) kept;
    bool forward;        // It is @forward that runs.
    int64_t arena_bytes; // No bound without the attribute.
    int64_t next_id;
    struct hec_walk walk;
    int faults;
};

static void fault(struct proof *p, MlirOperation op, const char *text) {
    if (p->faults++ < FAULTS_MAX) hec_ir_error(op, "homes: %s", text);
    p->walk.stop = true;
}

// ---- homes and regions

static const void *name_key(struct proof *p, MlirStringRef name) {
    return mlirIdentifierGet(mlirOperationGetContext(p->module), name).ptr;
}

// Whether bytes [at, at + bytes) may be used: no faults of the arithmetic, aligned, below arena_bytes.
static bool is_in_arena(const struct proof *p, int64_t at, int64_t bytes) {
    int64_t end;
    return at >= 0 && at % p->target->align_bytes == 0 &&
           !__builtin_add_overflow(at, bytes, &end) && end <= p->arena_bytes;
}

static bool is_slot_sound(const struct proof *p, const struct rows *rows) {
    int64_t all;
    return rows->stride >= rows->bytes && rows->stride % p->target->align_bytes == 0 &&
           !__builtin_mul_overflow(rows->stride, rows->count, &all) &&
           is_in_arena(p, rows->offset, all);
}

static void read_slot(struct proof *p, MlirOperation op) {
    if (!hec_any_has_offset(op) || !hec_any_has_stride(op) || !hec_any_has_rows(op)) {
        fault(p, op, "a slot has no place: run place-buffers first");
        return;
    }
    struct rows *rows = HEC_NEW(&p->arena, struct rows);
    *rows = (struct rows){.op = op,
                          .offset = hec_any_offset(op),
                          .stride = hec_any_stride(op),
                          .count = hec_any_rows(op),
                          .bytes = hec_type_bytes(hec_any_type(op))};
    if (rows->count < 1 || rows->count > ROWS_MAX) {
        fault(p, op, "a slot has no rows, or too many");
        return;
    }
    if (!is_slot_sound(p, rows)) {
        fault(p, op, "a slot's rows overlap, or lie outside the arena, or are not aligned");
        return;
    }
    rows->saved = hec_arena_alloc(&p->arena, (size_t)rows->count, sizeof *rows->saved);
    *hec_map_at(&p->slots, name_key(p, hec_any_sym_name(op))) = (intptr_t)rows;
    if (hec_any_kept(op)) HEC_PUSH(&p->arena, &p->kept, rows);
}

// The bytes of one row; none, and a fault, when there is no such row.
static struct region row_region(struct proof *p, MlirOperation op, const struct rows *rows,
                                int64_t row) {
    if (rows && row >= 0 && row < rows->count)
        return (struct region){rows->offset + row * rows->stride, rows->bytes};
    fault(p, op, "a row lies outside its slot");
    return (struct region){0};
}

static const struct spot *spot_of(struct proof *p, MlirOperation op, MlirValue v) {
    struct spot *spot = (struct spot *)hec_map_get(&p->spots, v.ptr);
    if (spot) return spot;
    spot = HEC_NEW(&p->arena, struct spot);
    spot->bytes = hec_type_bytes(mlirValueGetType(v));
    if (!hec_home_of(v, &spot->home) || spot->home.kind == HEC_HOME_NONE)
        fault(p, op, "a value has no home: run place-buffers first");
    if (spot->home.kind == HEC_HOME_ARENA && !is_in_arena(p, spot->home.at, spot->bytes))
        fault(p, op, "a value lies outside the arena, or is not aligned");
    if (spot->home.kind == HEC_HOME_SLOT) {
        spot->rows = (struct rows *)hec_map_get(&p->slots, name_key(p, spot->home.symbol));
        if (!spot->rows || spot->rows->bytes != spot->bytes)
            fault(p, op, "a value lies in no slot, or in one of another size");
    }
    *hec_map_at(&p->spots, v.ptr) = (intptr_t)spot;
    return spot;
}

// Where `v` lies at the current layer; no bytes when not in the arena.
static struct region region_of(struct proof *p, MlirOperation op, MlirValue v) {
    const struct spot *spot = spot_of(p, op, v);
    if (spot->home.kind == HEC_HOME_ARENA) return (struct region){spot->home.at, spot->bytes};
    if (spot->home.kind != HEC_HOME_SLOT) return (struct region){0};
    switch (spot->home.row) {
    case HEC_ROW_FIXED:
        return row_region(p, op, spot->rows, spot->home.at);
    case HEC_ROW_NEXT:
        return row_region(p, op, spot->rows, p->walk.layer < 0 ? -1 : p->walk.layer + 1);
    case HEC_ROW_LAYER:
        return row_region(p, op, spot->rows, p->walk.layer);
    default:
        return row_region(p, op, spot->rows, 0);
    }
}

static bool is_overlap(struct region a, struct region b) {
    return a.bytes && b.bytes && a.at < b.at + b.bytes && b.at < a.at + a.bytes;
}

static bool is_same(struct region a, struct region b) {
    return a.at == b.at && a.bytes == b.bytes;
}

// ---- tokens: memory holds them by address, and no two overlap

// The first token that ends behind `at`.
static int find_token(const struct proof *p, int64_t at) {
    int low = 0, high = p->memory.count;
    while (low < high) {
        const int middle = (low + high) / 2;
        const struct region *r = &p->memory.item[middle].region;
        if (r->at + r->bytes <= at) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

// Writing ends all values that overlap the region, also where they reach beyond it.
static void write_token(struct proof *p, struct region region, int64_t id) {
    if (!region.bytes) return;
    const int from = find_token(p, region.at);
    int to = from;
    while (to < p->memory.count && is_overlap(p->memory.item[to].region, region)) to++;
    if (to == from) {
        HEC_PUSH(&p->arena, &p->memory, (struct token){0});
        to++;
        memmove(p->memory.item + to, p->memory.item + from,
                (size_t)(p->memory.count - to) * sizeof *p->memory.item);
    } else {
        memmove(p->memory.item + from + 1, p->memory.item + to,
                (size_t)(p->memory.count - to) * sizeof *p->memory.item);
        p->memory.count -= to - from - 1;
    }
    p->memory.item[from] = (struct token){region, id};
}

static void expect_token(struct proof *p, MlirOperation op, struct region region, int64_t id,
                         const char *text) {
    if (!region.bytes) return;
    const int at = find_token(p, region.at);
    if (at < p->memory.count && is_same(p->memory.item[at].region, region) &&
        p->memory.item[at].id == id)
        return;
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

// The row of its slot that `op` saves or fetches.
static int64_t row_of(const struct proof *p, MlirOperation op) {
    const MlirValue layer = hec_layer_of(op);
    return mlirValueIsNull(layer) ? 0 : hec_walk_number(&p->walk, layer);
}

// An operation with a layer has the current one, or one that a constant names.
static void check_layer(struct proof *p, MlirOperation op) {
    const MlirValue layer = hec_layer_of(op);
    if (mlirValueIsNull(layer) || hec_op_is(hec_defining(layer), HEC_OP_CONSTANT)) return;
    if (p->walk.layer < 0 || hec_walk_number(&p->walk, layer) != p->walk.layer)
        fault(p, op, "the layer is neither a constant nor that of the loop around");
}

static struct rows *rows_of(struct proof *p, MlirOperation op) {
    intptr_t *rows = hec_map_at(&p->users, op.ptr);
    if (!*rows) *rows = hec_map_get(&p->slots, name_key(p, hec_any_slot(op)));
    return (struct rows *)*rows;
}

static void run_stash(struct proof *p, MlirOperation op) {
    struct rows *rows = rows_of(p, op);
    const int64_t row = row_of(p, op), id = id_of(p, hec_stash_value(op));
    check_layer(p, op);
    const struct region region = row_region(p, op, rows, row);
    if (!region.bytes) return;
    expect_token(p, op, region, id, "the stashed value is not in its slot");
    rows->saved[row] = id;
}

static void run_fetch(struct proof *p, MlirOperation op) {
    const struct rows *rows = rows_of(p, op);
    const int64_t row = row_of(p, op);
    check_layer(p, op);
    const struct region region = row_region(p, op, rows, row);
    if (!region.bytes) return;
    if (!is_same(region, region_of(p, op, hec_fetch_value(op))))
        fault(p, op, "a fetched value does not live in its slot");
    if (rows->saved[row] == 0) fault(p, op, "nothing was saved in what is fetched");
    set_id(p, hec_fetch_value(op), rows->saved[row]);
    expect_token(p, op, region, rows->saved[row], "a saved value was overwritten");
}

// A row may be written by what a loop carries, without a stash: the row after the last.
static void remember_row(struct proof *p, MlirOperation op, MlirValue v, int64_t id) {
    const struct spot *spot = spot_of(p, op, v);
    if (spot->home.kind != HEC_HOME_SLOT || spot->home.row != HEC_ROW_NEXT || p->faults > 0) return;
    spot->rows->saved[p->walk.layer + 1] = id;
}

static void check_results(struct proof *p, MlirOperation op) {
    const int results = (int)mlirOperationGetNumResults(op);
    for (int r = 0; r < results; r++) {
        const MlirValue result = hec_result(op, r);
        const struct region made = region_of(p, op, result);
        for (int i = 0; i < r; i++) {
            if (is_overlap(made, region_of(p, op, hec_result(op, i))) &&
                !hec_may_lie_together(op, i, r))
                fault(p, op, "two results overlap");
        }
        for (int i = 0; i < mlirOperationGetNumOperands(op); i++) {
            const MlirValue operand = hec_operand(op, i);
            if (!mlirTypeIsARankedTensor(mlirValueGetType(operand))) continue;
            const struct region read = region_of(p, op, operand);
            if (!is_overlap(made, read)) continue;
            if (!is_same(made, read) || !hec_may_reuse(op, operand, result))
                fault(p, op, "a result overlaps an operand");
        }
    }
}

// ---- parameters and gradients

// `op` reads a parameter or adds to its gradient, whose home is `home`.
static void check_access(struct proof *p, MlirOperation op, const struct hec_home *home) {
    const MlirValue layer = hec_layer_of(op);
    const MlirStringRef name = hec_any_param(op);
    const MlirOperation param = hec_find_symbol(p->module, name);
    const int64_t row = home->row == HEC_ROW_FIXED ? home->at : p->walk.layer;
    if (!mlirStringRefEqual(name, home->symbol) ||
        (!mlirValueIsNull(layer) && row != hec_walk_number(&p->walk, layer))) {
        fault(p, op, "a parameter or gradient is not at its home");
        return;
    }
    if (!mlirValueIsNull(layer) && (row < 0 || row >= hec_param_layers(param)))
        fault(p, op, "a row lies outside its parameter");
    const bool reads = hec_op_is(op, HEC_OP_get);
    if (reads && hec_type_is_rounded(mlirValueGetType(hec_get_value(op))) &&
        !hec_param_rounded(param))
        fault(p, op, "reads a rounded copy of a parameter that has none");
}

static void run_accumulate(struct proof *p, MlirOperation op) {
    const MlirValue value = hec_accumulate_value(op);
    const struct spot *spot = spot_of(p, op, value);
    expect_value(p, op, value);
    if (spot->home.kind == HEC_HOME_GRAD) check_access(p, op, &spot->home);
}

// Only moe.get gives a value in the parameters; a value in the gradients is added to them, for the
// moe.accumulate behind it and for nobody else.
static void check_kind(struct proof *p, MlirOperation op, int result) {
    const MlirValue value = hec_result(op, result);
    if (!mlirTypeIsARankedTensor(mlirValueGetType(value))) return;
    const struct hec_home *home = &spot_of(p, op, value)->home;
    const bool adds = hec_home_adds(value), gives = hec_op_is(op, HEC_OP_get);
    if (gives) check_access(p, op, home);
    if (gives != (home->kind == HEC_HOME_PARAM) || home->kind == HEC_HOME_ARGUMENT)
        fault(p, op, "a result lies where it cannot");
    if (adds && !(hec_op_traits(op)->adds >> result & 1)) fault(p, op, "cannot add to its result");
    if (adds && home->kind != HEC_HOME_GRAD) fault(p, op, "adds to what is no gradient");
    if (home->kind != HEC_HOME_GRAD) return;
    const MlirOperation user =
        hec_is_used_once(value) ? mlirOpOperandGetOwner(mlirValueGetFirstUse(value)) : op;
    if (!adds || !hec_op_is(user, HEC_OP_accumulate) ||
        !mlirBlockEqual(mlirOperationGetBlock(user), mlirOperationGetBlock(op)))
        fault(p, op, "a value in a gradient is more than what is added to it");
}

// The operand that a call adds to has to lie where its result does.
static void check_sum(struct proof *p, MlirOperation op) {
    const MlirValue onto = hec_call_of(op).onto;
    if (mlirValueIsNull(onto)) return;
    if (hec_home_adds(hec_result(op, 0)) ||
        !is_same(region_of(p, op, onto), region_of(p, op, hec_result(op, 0))))
        fault(p, op, "a sum is not where it is added to");
}

// Values that the next @forward reads may be written by nothing else in this one.
static void check_kept(struct proof *p, MlirOperation op, MlirValue result) {
    if (!p->forward || !mlirTypeIsARankedTensor(mlirValueGetType(result))) return;
    const struct region made = region_of(p, op, result);
    for (int i = 0; i < p->kept.count; i++) {
        const struct rows *rows = p->kept.item[i];
        const struct region all = {rows->offset, rows->stride * rows->count};
        if (is_overlap(made, all) && spot_of(p, op, result)->rows != rows)
            fault(p, op, "a value that the next @forward reads is overwritten");
    }
}

static void run_plain(struct proof *p, MlirOperation op) {
    for (int i = 0; i < mlirOperationGetNumOperands(op); i++) {
        expect_value(p, op, hec_operand(op, i));
    }
    check_layer(p, op);
    check_results(p, op);
    check_sum(p, op);
    for (int r = 0; r < mlirOperationGetNumResults(op); r++) {
        const MlirValue result = hec_result(op, r);
        check_kind(p, op, r);
        check_kept(p, op, result);
        set_id(p, result, ++p->next_id);
        write_token(p, region_of(p, op, result), p->next_id);
        remember_row(p, op, result, p->next_id);
    }
}

// ---- the walk

// A carried value needs no code: it has to lie where the next reader looks.
static void carry_value(struct proof *p, MlirOperation op, MlirValue to, int64_t id) {
    set_id(p, to, id);
    if (!region_of(p, op, to).bytes) fault(p, op, "a carried value is not in the arena");
    expect_token(p, op, region_of(p, op, to), id, "a carried value is not where it is read next");
}

static void take(struct hec_walk *walk, const struct hec_for *loop, bool again) {
    struct proof *p = walk->domain;
    p->carried.count = 0;
    for (int i = 0; i < loop->carried; i++) {
        const MlirValue from = again ? hec_for_yielded(loop, i) : hec_for_init(loop, i);
        if (again) expect_value(p, loop->op, from);
        HEC_PUSH(&p->arena, &p->carried, id_of(p, from));
    }
}

static void carry(struct hec_walk *walk, const struct hec_for *loop, bool out) {
    struct proof *p = walk->domain;
    for (int i = 0; i < loop->carried; i++) {
        const MlirValue to = out ? hec_result(loop->op, i) : hec_for_argument(loop, i);
        carry_value(p, loop->op, to, p->carried.item[i]);
    }
}

static void run_op(struct hec_walk *walk, MlirOperation op) {
    struct proof *p = walk->domain;
    switch (hec_op_of(op)) {
    case HEC_OP_stash:
        run_stash(p, op);
        break;
    case HEC_OP_fetch:
        run_fetch(p, op);
        break;
    case HEC_OP_accumulate:
        check_layer(p, op);
        run_accumulate(p, op);
        break;
    case HEC_OP_SCF_YIELD:
        break;
    default:
        run_plain(p, op);
    }
}

static void check_observed(struct proof *p, const struct rows *rows) {
    if (!rows || !hec_any_observed(rows->op)) return;
    for (int64_t row = 0; row < rows->count; row++) {
        if (rows->saved[row] == 0) continue;
        expect_token(p, rows->op, row_region(p, rows->op, rows, row), rows->saved[row],
                     "an observed slot was overwritten");
    }
}

static void run_module(struct proof *p, const struct hec_ops *symbols) {
    static const char *const entry[] = {"forward", "backward"};
    for (int k = 0; k < symbols->count; k++) {
        if (hec_op_is(symbols->op[k], HEC_OP_slot)) read_slot(p, symbols->op[k]);
    }
    for (int e = 0; e < 2 && p->faults == 0; e++) {
        p->forward = e == 0;
        hec_walk_func(&p->walk, p->module, entry[e]);
        for (int k = 0; k < symbols->count && e == 0 && p->faults == 0; k++) {
            if (!hec_op_is(symbols->op[k], HEC_OP_slot)) continue;
            const MlirStringRef name = hec_any_sym_name(symbols->op[k]);
            check_observed(p, (struct rows *)hec_map_get(&p->slots, name_key(p, name)));
        }
    }
}

static bool prove(MlirOperation module, int64_t waves) {
    struct proof p = {
        .module = module,
        .target = hec_target_of(module),
        .arena_bytes = INT64_MAX,
        .walk = {.waves = waves, .op = run_op, .take = take, .carry = carry},
    };
    p.walk.domain = &p;
    if (hec_module_has_arena_bytes(module)) p.arena_bytes = hec_module_arena_bytes(module);
    struct hec_ops symbols = hec_ops_in(hec_module_body(module));
    run_module(&p, &symbols);
    free(symbols.op);
    hec_walk_free(&p.walk);
    hec_map_free(&p.env);
    hec_map_free(&p.slots);
    hec_map_free(&p.spots);
    hec_map_free(&p.users);
    hec_arena_free(&p.arena);
    return p.faults == 0;
}

// All waves but the last one run alike: a proof for one and for two holds for any number.
bool hec_homes_prove(MlirOperation module) {
    return hec_prove_params(module) && hec_prove_units(module) && prove(module, 1) &&
           (!hec_module_has_world(module) || prove(module, 2));
}

static enum hec_pass_result run(MlirOperation module, const struct hec_pass_options *options) {
    (void)options;
    return hec_homes_prove(module) ? HEC_PASS_DONE : HEC_PASS_BROKEN;
}

const struct hec_pass_code hec_pass_prove_homes = {
    .run = run,
};
