// simplify: nothing is computed twice, nothing is computed in vain.
//
//   before   %a = moe.silu(%x); %b = moe.silu(%x); %c = moe.mul(%b, fill 1); %d = moe.exp(%x)
//   after    %a = moe.silu(%x), used for %b and %c
//
// Why      Differentiation asks for values as it needs them, inlining copies bodies whole; both
//          leave repetitions. Upstream's cse and canonicalize take our operations for effects.
// Needs    only a module that verifies.
// Leaves   gradients of two slices that make up a whole as one concat; no two equal pure operations of which one sees the other, no unused pure operation, no
//          product with 1 or sum with 0, no loop-carried value that is its own successor or is
//          never read, no slot (unless `observed`) and no stash that nothing fetches.
// Reports  nothing.
#include "ir/accessors.h"
#include "ir/ops/parts.h"
#include "passes/base/pass.h"
#include "passes/base/rewrite.h"

#include <stdlib.h>

enum { ATTRIBUTES_MAX = 16, CARRIED_MAX = 16 };

// ---- equal operations

// Operations seen so far, by a hash of what makes them equal; chains of equal hashes.
struct seen {
    struct hec_map first;  // Hash -> index into op, plus 1.
    struct hec_map stored; // Slot symbols that @func stashes: their fetches are not merged.
    MlirOperation *op;
    int *next;
    int count, capacity;
};

static void *slot_key(MlirOperation op) { // Attributes are unique in a context.
    return (void *)mlirOperationGetAttributeByName(op, HEC_STR("slot")).ptr;
}

static bool may_merge(const struct seen *seen, MlirOperation op) {
    if (mlirOperationGetNumRegions(op) > 0 || mlirOperationGetNumResults(op) == 0) return false;
    if (hec_op_is(op, HEC_OP_fetch)) return !hec_map_get(&seen->stored, slot_key(op));
    return hec_op_traits(op)->pure;
}

static uintptr_t mix(uintptr_t hash, const void *part) {
    return (hash ^ (uintptr_t)part) * (uintptr_t)UINT64_C(0x9E3779B97F4A7C15) + (hash >> 29);
}

// The first attribute from `i` on that says what `op` computes: its unit does not.
static int next_attribute(MlirOperation op, int i) {
    while (i < mlirOperationGetNumAttributes(op) &&
           mlirStringRefEqual(mlirIdentifierStr(mlirOperationGetAttribute(op, i).name),
                              HEC_STR(HEC_UNIT)))
        i++;
    return i;
}

static bool has_same_attributes(MlirOperation a, MlirOperation b) { // Sorted by name.
    int i = next_attribute(a, 0), j = next_attribute(b, 0);
    while (i < mlirOperationGetNumAttributes(a) && j < mlirOperationGetNumAttributes(b)) {
        const MlirNamedAttribute x = mlirOperationGetAttribute(a, i);
        const MlirNamedAttribute y = mlirOperationGetAttribute(b, j);
        if (!mlirIdentifierEqual(x.name, y.name) || !mlirAttributeEqual(x.attribute, y.attribute))
            return false;
        i = next_attribute(a, i + 1);
        j = next_attribute(b, j + 1);
    }
    return i == mlirOperationGetNumAttributes(a) && j == mlirOperationGetNumAttributes(b);
}

static const void *hash_of(MlirOperation op) {
    uintptr_t hash = mix(1, mlirOperationGetName(op).ptr);
    for (int i = 0; i < mlirOperationGetNumOperands(op); i++) {
        hash = mix(hash, hec_operand(op, i).ptr);
    }
    for (int i = next_attribute(op, 0); i < mlirOperationGetNumAttributes(op);
         i = next_attribute(op, i + 1)) {
        hash = mix(hash, mlirOperationGetAttribute(op, i).attribute.ptr);
    }
    return (const void *)(hash | 1);
}

static bool is_equal(MlirOperation a, MlirOperation b) {
    if (!mlirIdentifierEqual(mlirOperationGetName(a), mlirOperationGetName(b)) ||
        mlirOperationGetNumOperands(a) != mlirOperationGetNumOperands(b) ||
        mlirOperationGetNumResults(a) != mlirOperationGetNumResults(b)) {
        return false;
    }
    for (int i = 0; i < mlirOperationGetNumOperands(a); i++) {
        if (!mlirValueEqual(hec_operand(a, i), hec_operand(b, i))) return false;
    }
    for (int i = 0; i < mlirOperationGetNumResults(a); i++) {
        if (!mlirTypeEqual(mlirValueGetType(hec_result(a, i)), mlirValueGetType(hec_result(b, i))))
            return false;
    }
    return has_same_attributes(a, b);
}

// Whether `op` may use the results of `other` instead. A fused region takes nothing from outside.
static bool may_use(MlirOperation op, MlirOperation other) {
    const MlirBlock block = mlirOperationGetBlock(op);
    if (mlirBlockEqual(mlirOperationGetBlock(other), block)) return true;
    return !hec_op_is(mlirOperationGetParentOperation(op), HEC_OP_fused) &&
           hec_visible(hec_result(other, 0), block);
}

// An earlier operation equal to `op` that `op` can see; else remembers `op`.
static MlirOperation find_equal(struct seen *seen, MlirOperation op) {
    intptr_t *first = hec_map_at(&seen->first, hash_of(op));
    for (intptr_t at = *first; at; at = seen->next[at - 1]) {
        const MlirOperation other = seen->op[at - 1];
        if (is_equal(other, op) && may_use(op, other)) return other;
    }
    seen->op[seen->count] = op;
    seen->next[seen->count++] = (int)*first;
    *first = seen->count;
    return (MlirOperation){0};
}

static void replace(MlirOperation op, MlirOperation by) {
    for (int i = 0; i < mlirOperationGetNumResults(op); i++) {
        mlirValueReplaceAllUsesOfWith(hec_result(op, i), hec_result(by, i));
    }
    mlirOperationDestroy(op);
}

// Pre-order is execution order, so an operation that `op` sees comes before it.
static bool merge_equal(MlirOperation func) {
    struct hec_ops ops = hec_ops_below(func);
    struct seen seen = {.op = calloc((size_t)ops.count, sizeof *seen.op),
                        .next = calloc((size_t)ops.count, sizeof *seen.next)};
    bool changed = false;
    for (int k = 0; k < ops.count; k++) {
        if (hec_op_is(ops.op[k], HEC_OP_stash)) *hec_map_at(&seen.stored, slot_key(ops.op[k])) = 1;
    }
    for (int k = 0; k < ops.count; k++) {
        if (!may_merge(&seen, ops.op[k])) continue;
        const MlirOperation equal = find_equal(&seen, ops.op[k]);
        if (mlirOperationIsNull(equal)) continue;
        replace(ops.op[k], equal);
        changed = true;
    }
    free(ops.op);
    free(seen.op);
    free(seen.next);
    hec_map_free(&seen.first);
    hec_map_free(&seen.stored);
    return changed;
}

// ---- neutral elements

static bool is_fill(MlirValue v, double value) {
    const MlirOperation op = hec_defining(v);
    return hec_op_is(op, HEC_OP_fill) && hec_get_float(op, "value") == value;
}

// The operand that `op` computes unchanged; null when there is none.
static MlirValue unchanged_by(MlirOperation op) {
    const enum hec_op id = hec_op_of(op);
    MlirValue same = {0};
    if (id == HEC_OP_mul || id == HEC_OP_add) {
        const double neutral = id == HEC_OP_mul ? 1 : 0;
        const MlirValue a = hec_arithmetic_a(op), b = hec_arithmetic_b(op);
        if (is_fill(b, neutral)) same = a;
        if (is_fill(a, neutral)) same = b;
    } else if ((id == HEC_OP_sub && is_fill(hec_sub_b(op), 0)) ||
               (id == HEC_OP_div && is_fill(hec_div_b(op), 1))) {
        same = hec_arithmetic_a(op);
    } else if (id == HEC_OP_sum) {
        same = hec_sum_a(op);
    }
    const bool fits =
        same.ptr && mlirTypeEqual(mlirValueGetType(same), mlirValueGetType(hec_result(op, 0)));
    return fits ? same : (MlirValue){0};
}

static bool drop_neutral(MlirOperation func) {
    bool changed = false;
    HEC_EACH (op, hec_ops_below(func)) {
        const MlirValue same = unchanged_by(op);
        if (!same.ptr) continue;
        mlirValueReplaceAllUsesOfWith(hec_result(op, 0), same);
        mlirOperationDestroy(op);
        changed = true;
    }
    return changed;
}

// ---- parts

// The slice_grad that makes operand `i` of `add` alone, taken apart.
static bool takes_part(MlirOperation add, int i, struct hec_parts *parts) {
    const MlirValue v = hec_operand(add, i);
    const MlirOperation made = hec_defining(v);
    return hec_op_is(made, HEC_OP_slice_grad) && hec_is_used_once(v) && hec_parts_of(made, parts);
}

// The gradients of two slices that are the whole together: with no zeros, and nothing added to them.
static bool join_slices(MlirOperation func) {
    bool changed = false;
    HEC_EACH (op, hec_ops_below(func)) {
        struct hec_parts parts[2];
        if (!hec_op_is(op, HEC_OP_add) || !takes_part(op, 0, &parts[0]) ||
            !takes_part(op, 1, &parts[1]) || parts[0].at != parts[1].at)
            continue;
        const int first = parts[0].part[0].begin == 0 ? 0 : 1, at = parts[0].at;
        const struct hec_part *a = &parts[first].part[0], *b = &parts[!first].part[0];
        const MlirType type = mlirValueGetType(hec_result(op, 0));
        const struct hec_tensor whole = hec_tensor_of(type);
        if (a->begin != 0 || b->begin != a->space.size[at] ||
            b->begin + b->space.size[at] != whole.size[at])
            continue;
        struct hec_builder builder = hec_builder_before(op);
        const MlirValue in[] = {a->value, b->value};
        mlirValueReplaceAllUsesOfWith(
            hec_result(op, 0), hec_build_value(&builder, HEC_OP_concat, 2, in, type, 0, NULL));
        changed = true; // The unused parts are dropped by the next round.
    }
    return changed;
}

// ---- loops

static bool simplify_loop(MlirOperation op) {
    const struct hec_for loop = hec_for_of(op);
    bool drop[CARRIED_MAX] = {0}, any = false;
    for (int k = 0; k < loop.carried && k < CARRIED_MAX; k++) {
        const MlirValue argument = hec_for_argument(&loop, k), result = hec_result(op, k);
        if (mlirValueEqual(hec_for_yielded(&loop, k), argument)) {
            mlirValueReplaceAllUsesOfWith(result, hec_for_init(&loop, k));
            mlirValueReplaceAllUsesOfWith(argument, hec_for_init(&loop, k));
            drop[k] = true;
        }
        drop[k] |= hec_is_unused(argument) && hec_is_unused(result);
        any |= drop[k];
    }
    if (any) hec_drop_carried(op, drop);
    return any;
}

static bool simplify_loops(MlirOperation func) {
    struct hec_ops ops = hec_ops_below(func);
    bool changed = false;
    for (int k = ops.count - 1; k >= 0; k--) { // Inner loops first: a loop is built anew.
        if (hec_op_is(ops.op[k], HEC_OP_FOR)) changed |= simplify_loop(ops.op[k]);
    }
    free(ops.op);
    return changed;
}

// ---- unused operations and slots

static bool has_effect(MlirOperation op) {
    const enum hec_op id = hec_op_of(op);
    if (id == HEC_OP_FOR) {
        struct hec_ops ops = hec_ops_in(mlirRegionGetFirstBlock(mlirOperationGetRegion(op, 0)));
        bool effect = false;
        for (int k = 0; k < ops.count - 1; k++) effect |= has_effect(ops.op[k]);
        free(ops.op);
        return effect;
    }
    return !hec_op_traits(op)->pure;
}

static bool drop_unused(MlirOperation func) {
    struct hec_ops ops = hec_ops_below(func);
    bool changed = false;
    for (int k = ops.count - 1; k > 0; k--) { // Users first.
        bool used = mlirOperationGetNumResults(ops.op[k]) == 0;
        for (int i = 0; i < mlirOperationGetNumResults(ops.op[k]); i++) {
            used |= !hec_is_unused(hec_result(ops.op[k], i));
        }
        if (used || has_effect(ops.op[k])) continue;
        mlirOperationDestroy(ops.op[k]);
        changed = true;
    }
    free(ops.op);
    return changed;
}

// Without a backward function nothing fetches yet.
static bool drop_slots(MlirOperation module) {
    if (mlirOperationIsNull(hec_find_symbol(module, HEC_STR("backward")))) return false;
    struct hec_ops ops = hec_ops_below(module);
    struct hec_map wanted = {0}; // Slot symbol -> 1.
    bool changed = false;
    for (int k = 0; k < ops.count; k++) {
        const bool observed = hec_op_is(ops.op[k], HEC_OP_slot) && hec_any_observed(ops.op[k]);
        const MlirContext c = mlirOperationGetContext(module);
        if (hec_op_is(ops.op[k], HEC_OP_fetch)) *hec_map_at(&wanted, slot_key(ops.op[k])) = 1;
        if (!observed) continue;
        const MlirStringRef name = hec_any_sym_name(ops.op[k]);
        *hec_map_at(&wanted, mlirFlatSymbolRefAttrGet(c, name).ptr) = 1;
    }
    for (int k = ops.count - 1; k >= 0; k--) {
        const bool slot = hec_op_is(ops.op[k], HEC_OP_slot);
        if (!slot && !hec_op_is(ops.op[k], HEC_OP_stash)) continue;
        const MlirStringRef name = hec_get_string(ops.op[k], slot ? "sym_name" : "slot");
        const MlirContext c = mlirOperationGetContext(module);
        if (hec_map_get(&wanted, mlirFlatSymbolRefAttrGet(c, name).ptr)) continue;
        mlirOperationDestroy(ops.op[k]);
        changed = true;
    }
    free(ops.op);
    hec_map_free(&wanted);
    return changed;
}

void hec_simplify(MlirOperation module) {
    for (bool changed = true; changed;) {
        changed = false;
        HEC_EACH_OF (op, hec_ops_in(hec_module_body(module)), HEC_OP_FUNC) {
            changed |= drop_neutral(op);
            changed |= join_slices(op);
            changed |= merge_equal(op);
            changed |= simplify_loops(op);
            changed |= drop_unused(op);
        }
        changed |= drop_slots(module);
    }
}

static enum hec_pass_result run(MlirOperation module, const struct hec_pass_options *options) {
    (void)options;
    hec_simplify(module);
    return HEC_PASS_DONE;
}

const struct hec_pass_code hec_pass_simplify = {
    .run = run,
};
