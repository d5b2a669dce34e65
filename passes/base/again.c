// Recomputes values in @backward in place of fetching them. See passes/recompute.c.
#include "passes/base/again.h"

#include <stdlib.h>
#include <string.h>

#include "ir/accessors.h"
#include "ir/core/setting.h"
#include "ir/ops/contract.h"
#include "ir/target/target.h"
#include "lang/base/arena.h"
#include "passes/base/rewrite.h"

struct recompute {
    MlirOperation module;
    bool stays;              // Rows stay on their rank: moving them again is cheap, too.
    bool gathers;            // Products read rows where they lie.
    struct hec_map stash;    // Value of @forward -> its stash.
    struct hec_map slot;     // Symbol attribute of a slot -> its stash.
    struct hec_map observed; // Symbol attribute of a slot that the runtime reads -> 1.
    struct hec_map answer;   // Value -> whether @backward can have it: 1 yes, -1 no.
    struct hec_map rebuild;  // Block of @backward -> its struct rebuild.
};

static const void *slot_key(MlirOperation op) { // Attributes are unique in a context.
    return mlirOperationGetAttributeByName(op, HEC_STR("slot")).ptr;
}

// In forward, but for the stash; backward reads for the same GEMMs.
static bool is_read_by_products(MlirValue rows) {
    HEC_EACH_USE (use, rows) {
        const MlirOperation user = mlirOpOperandGetOwner(use);
        if (!hec_is_product(user) && !hec_op_is(user, HEC_OP_stash)) return false;
    }
    return true;
}

static enum hec_again again_of_text(MlirStringRef text) {
    static const char *const names[] = {"none", "elementwise", "cheap", "all"};
    const char *end = text.length ? memchr(text.data, '(', text.length) : NULL;
    if (end) text.length = (size_t)(end - text.data);
    for (int again = HEC_AGAIN_NONE; again <= HEC_AGAIN_ALL; again++) {
        if (mlirStringRefEqual(text, HEC_STR(names[again]))) return (enum hec_again)again;
    }
    return HEC_AGAIN_ELEMENTWISE;
}

enum hec_again hec_again_of(MlirOperation op) {
    const MlirOperation module = hec_module_of(op);
    const MlirAttribute unit = hec_unit_of(op);
    const bool own = hec_module_has_recompute(module) && !mlirAttributeIsNull(unit);
    for (int depth = own ? (int)mlirArrayAttrGetNumElements(unit) - 1 : -1; depth >= 0; depth--) {
        const MlirAttribute value = mlirDictionaryAttrGetElementByName(hec_module_recompute(module),
                                                                       hec_unit_at(op, depth));
        if (!mlirAttributeIsNull(value) && mlirAttributeIsAString(value))
            return again_of_text(mlirStringAttrGetValue(value));
    }
    return again_of_text(hec_setting_text(module, HEC_KEY_parallel_recompute));
}

static bool may_compute_again(const struct recompute *r, MlirOperation op) {
    if (mlirOperationIsNull(op)) return false;
    const enum hec_again again = hec_again_of(op);
    if (again == HEC_AGAIN_NONE) return false;
    if (hec_op_traits(op)->elementwise) return true;
    switch (hec_op_of(op)) {
    case HEC_OP_permute:
        return r->stays && (again >= HEC_AGAIN_CHEAP ||
                            (r->gathers && is_read_by_products(hec_permute_rows(op))));
    case HEC_OP_gate_rows:
        return again >= HEC_AGAIN_CHEAP && r->stays;
    case HEC_OP_combine:
        return again == HEC_AGAIN_ALL && r->stays;
    case HEC_OP_router:
    case HEC_OP_route:
    case HEC_OP_limit:
    case HEC_OP_mean_scores:
    case HEC_OP_aux_loss:
    case HEC_OP_z_loss:
    case HEC_OP_cross_entropy:
    case HEC_OP_distill:
    case HEC_OP_dpo:
    case HEC_OP_policy:
    case HEC_OP_linear_cross_entropy:
        return false;
    default:
        return (again >= HEC_AGAIN_CHEAP && hec_op_traits(op)->cheap) ||
               (again == HEC_AGAIN_ALL && hec_op_traits(op)->pure);
    }
}

// Values that @backward has without any slot, given those of its operands.
static bool is_free(MlirOperation op) {
    return hec_op_is(op, HEC_OP_get) || hec_op_is(op, HEC_OP_fill) ||
           hec_op_is(op, HEC_OP_CONSTANT);
}

static bool is_function_argument(MlirValue v) {
    return mlirValueIsABlockArgument(v) &&
           hec_op_is(mlirBlockGetParentOperation(mlirBlockArgumentGetOwner(v)), HEC_OP_FUNC);
}

// A value of another layer cannot be had: a slot is read at the layer of the fetch.
static bool is_beside(MlirValue v, MlirOperation op) {
    return mlirBlockEqual(hec_block_of(v), mlirOperationGetBlock(op)) || is_free(hec_defining(v)) ||
           is_function_argument(v);
}

static bool can_have(struct recompute *r, MlirValue v);

static bool can_compute(struct recompute *r, MlirOperation op) {
    for (int i = 0; i < mlirOperationGetNumOperands(op); i++) {
        const MlirValue operand = hec_operand(op, i);
        if (!is_beside(operand, op) || !can_have(r, operand)) return false;
    }
    return true;
}

static bool can_have(struct recompute *r, MlirValue v) {
    if (is_function_argument(v) || hec_map_get(&r->stash, v.ptr)) return true;
    const MlirOperation op = hec_defining(v);
    if (mlirOperationIsNull(op)) return mlirTypeIsAIndex(mlirValueGetType(v));
    if (is_free(op)) return true;
    intptr_t *answer = hec_map_at(&r->answer, v.ptr);
    if (*answer == 0) {
        const bool can = may_compute_again(r, op) && can_compute(r, op);
        answer = hec_map_at(&r->answer, v.ptr); // The map may have grown.
        *answer = can ? 1 : -1;
    }
    return *answer > 0;
}

// A stashed value that is recomputed instead.
static bool is_dropped(struct recompute *r, MlirOperation stash) {
    const MlirOperation op = hec_defining(hec_stash_value(stash));
    return may_compute_again(r, op) && !hec_map_get(&r->observed, slot_key(stash)) &&
           can_compute(r, op);
}

// ---- building in @backward

// Values rebuilt in one block. Fetches are replaced in order, and later ones use the values built for earlier
// ones. Otherwise a chain of n values would be built n times.
struct rebuild {
    struct recompute *r;
    struct hec_builder b;  // Before the fetch that is replaced.
    MlirValue layer;       // The fetch's; null without layers.
    struct hec_map values; // Values of @forward -> here.
};

static MlirValue have(struct rebuild *to, MlirValue v);

static MlirValue clone(struct rebuild *to, MlirValue v) {
    const MlirOperation op = hec_defining(v);
    for (int i = 0; i < mlirOperationGetNumOperands(op); i++) have(to, hec_operand(op, i));
    hec_clone_mapped(&to->b, op, &to->values);
    return (MlirValue){hec_map_find(&to->values, v)};
}

static MlirValue fetch(struct rebuild *to, MlirValue v, MlirOperation stash) {
    const bool layered = !mlirValueIsNull(hec_stash_layer(stash));
    return hec_build_fetch(&to->b, v, hec_any_slot(stash), layered ? to->layer : (MlirValue){0});
}

static MlirValue argument_of(struct rebuild *to, MlirValue v) {
    const MlirBlock body = hec_func_body(hec_func_of(to->b.before));
    return mlirBlockGetArgument(body, mlirBlockArgumentGetArgNumber(v));
}

// The value that stands for forward value `v` before the fetch. A dropped stash gives none.
static MlirValue have(struct rebuild *to, MlirValue v) {
    const MlirValue known = {hec_map_find(&to->values, v)};
    if (known.ptr) return known;
    const MlirOperation stash = {hec_map_find(&to->r->stash, v)};
    MlirValue found;
    if (is_function_argument(v)) {
        found = argument_of(to, v);
    } else if (mlirTypeIsAIndex(mlirValueGetType(v)) && mlirValueIsABlockArgument(v)) {
        found = to->layer;
    } else if (stash.ptr && !is_dropped(to->r, stash)) {
        found = fetch(to, v, stash);
    } else {
        found = clone(to, v);
    }
    hec_map_put(&to->values, v, found.ptr);
    return found;
}

// The rebuild of the fetch's block; a new one when there is none for its layer.
static struct rebuild *rebuild_at(struct recompute *r, MlirOperation fetch) {
    intptr_t *known = hec_map_at(&r->rebuild, mlirOperationGetBlock(fetch).ptr);
    const MlirValue layer = hec_fetch_layer(fetch);
    struct rebuild *to = (struct rebuild *)*known;
    if (!to) *known = (intptr_t)(to = hec_checked(calloc(1, sizeof *to)));
    if (to->layer.ptr != layer.ptr) hec_map_free(&to->values);
    to->r = r;
    to->layer = layer;
    to->b = hec_builder_before(fetch);
    return to;
}

static void replace_fetch(struct recompute *r, MlirOperation fetch, MlirOperation stash) {
    const MlirValue value = have(rebuild_at(r, fetch), hec_stash_value(stash));
    mlirValueReplaceAllUsesOfWith(hec_fetch_value(fetch), value);
    mlirOperationDestroy(fetch);
}

static void free_rebuilds(struct recompute *r) {
    for (int i = 0; i < r->rebuild.capacity; i++) {
        struct rebuild *to = r->rebuild.key[i] ? (struct rebuild *)r->rebuild.value[i] : NULL;
        if (to) hec_map_free(&to->values);
        free(to);
    }
    hec_map_free(&r->rebuild);
}

static void recompute(struct recompute *r) {
    struct hec_ops ops = hec_ops_below(r->module);
    for (int k = 0; k < ops.count; k++) {
        if (hec_op_is(ops.op[k], HEC_OP_slot) && hec_any_observed(ops.op[k])) {
            const MlirStringRef name = hec_any_sym_name(ops.op[k]);
            const MlirContext c = mlirOperationGetContext(r->module);
            *hec_map_at(&r->observed, mlirFlatSymbolRefAttrGet(c, name).ptr) = 1;
        }
        if (!hec_op_is(ops.op[k], HEC_OP_stash)) continue;
        hec_map_put(&r->stash, hec_stash_value(ops.op[k]), ops.op[k].ptr);
        *hec_map_at(&r->slot, slot_key(ops.op[k])) = (intptr_t)ops.op[k].ptr;
    }
    for (int k = 0; k < ops.count; k++) {
        if (!hec_op_is(ops.op[k], HEC_OP_fetch)) continue;
        const MlirOperation stash = {(void *)hec_map_get(&r->slot, slot_key(ops.op[k]))};
        if (stash.ptr && is_dropped(r, stash)) replace_fetch(r, ops.op[k], stash);
    }
    free(ops.op);
    hec_simplify(r->module); // Merges what was built twice, drops stashes that nothing fetches.
}

void hec_compute_again(MlirOperation module) {
    const bool stays = !hec_module_has_world(module) ||
                       hec_setting_is(module, HEC_KEY_parallel_experts, "replicate");
    struct recompute r = {
        .module = module,
        .stays = stays,
        .gathers = hec_target_of(module)->gathers,
    };
    recompute(&r);
    hec_map_free(&r.stash);
    hec_map_free(&r.slot);
    hec_map_free(&r.observed);
    hec_map_free(&r.answer);
    free_rebuilds(&r);
}
