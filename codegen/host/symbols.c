// The symbols of the module: parameters, sets and slots, with their names in the program and their relations.
#include "codegen/host/symbols.h"

#include <stdlib.h>

#include "codegen/host/dims.h"
#include "ir/accessors.h"
#include "ir/core/setting.h"

struct hec_ops hec_symbols(struct hec_emitter *e, enum hec_op kind) {
    struct hec_ops all = hec_ops_in(hec_module_body(e->module));
    int count = 0;
    for (int i = 0; i < all.count; i++) {
        if (hec_op_is(all.op[i], kind)) all.op[count++] = all.op[i];
    }
    all.count = count;
    return all;
}

MlirOperation hec_set_of(struct hec_emitter *e, MlirOperation param) {
    if (!hec_any_has_set(param)) return (MlirOperation){0};
    return hec_find_symbol(e->module, hec_any_set(param));
}

bool hec_in_set(MlirOperation param) {
    return hec_any_has_set(param);
}

bool hec_is_rounded(struct hec_emitter *e, MlirOperation symbol) {
    if (hec_op_is(symbol, HEC_OP_param)) return hec_any_rounded(symbol);
    HEC_EACH (one, hec_symbols(e, HEC_OP_param))
        if (hec_any_rounded(one) && mlirOperationEqual(hec_set_of(e, one), symbol)) return true;
    return false;
}

bool hec_is_cut(struct hec_emitter *e, MlirOperation symbol) {
    if (e->world == 1 || !hec_setting_is(e->module, HEC_KEY_parallel_dense, "shard")) return false;
    if (hec_op_is(symbol, HEC_OP_set)) return !e->sends_rows;
    return !hec_in_set(symbol) && (hec_any_trainable(symbol) || hec_any_frozen(symbol));
}

bool hec_comes_as_copy(struct hec_emitter *e, MlirOperation symbol) {
    return hec_is_cut(e, symbol) && hec_op_is(symbol, HEC_OP_param) && hec_any_copy_alone(symbol);
}

bool hec_has_rounded(struct hec_emitter *e) {
    HEC_EACH (one, hec_symbols(e, HEC_OP_param))
        if (hec_is_rounded(e, one)) return true;
    return false;
}

// Members are named after their symbols; a parameter in a chunk is named by a constant.
static const char *name_symbol(struct hec_emitter *e, struct hec_idents *scope, MlirOperation op) {
    intptr_t *at = hec_map_at(&e->names, op.ptr);
    if (!*at) *at = (intptr_t)hec_ident(scope, hec_any_sym_name(op), "symbol");
    return (const char *)*at;
}

static void name_all(struct hec_emitter *e) {
    struct hec_idents params = {.arena = &e->arena, .members = true};
    struct hec_idents slots = params;
    HEC_EACH (op, hec_ops_in(hec_module_body(e->module))) {
        if (hec_op_is(op, HEC_OP_slot)) name_symbol(e, &slots, op);
        if (hec_op_is(op, HEC_OP_set)) name_symbol(e, &params, op);
        if (hec_op_is(op, HEC_OP_param)) name_symbol(e, hec_in_set(op) ? &e->globals : &params, op);
    }
}

const char *hec_member(struct hec_emitter *e, MlirOperation symbol) {
    if (!e->names.count) name_all(e);
    const intptr_t name = hec_map_get(&e->names, symbol.ptr);
    if (!name) return "unknown";
    if (hec_op_is(symbol, HEC_OP_param) && hec_in_set(symbol) &&
        hec_any_offset(symbol) > INT32_MAX) { // No enum constant is that large.
        return HEC_TEXT(e, "INT64_C(%" PRId64 ")", hec_any_offset(symbol));
    }
    return (const char *)name;
}

const char *hec_experts(struct hec_emitter *e, MlirOperation set) {
    const char *text = HEC_TEXT(e, "%" PRId64, hec_any_experts(set));
    HEC_EACH (op, hec_symbols(e, HEC_OP_param)) {
        if (!mlirOperationEqual(hec_set_of(e, op), set)) continue;
        const struct hec_tensor t = hec_tensor_of(hec_any_type(op));
        text = hec_dim(e, &t, 0);
        break;
    }
    return text;
}

MlirOperation hec_loads_of(struct hec_emitter *e, MlirOperation set) {
    return hec_find_slot(e->module, "loads", set);
}

MlirOperation hec_set_of_loads(struct hec_emitter *e, MlirOperation slot) {
    const bool loads = mlirStringRefEqual(hec_any_holds(slot), HEC_STR("loads"));
    return loads ? hec_find_symbol(e->module, hec_any_set(slot)) : (MlirOperation){0};
}

static bool has(struct hec_emitter *e, enum hec_op computed) {
    HEC_EACH (op, hec_ops_below(e->module))
        if (hec_op_computes(op) == computed) return true;
    return false;
}

bool hec_has_noise(struct hec_emitter *e) {
    return has(e, HEC_OP_noise) || has(e, HEC_OP_dropout);
}

bool hec_has_teacher(struct hec_emitter *e) {
    return has(e, HEC_OP_distill) || has(e, HEC_OP_dpo) || has(e, HEC_OP_policy);
}

bool hec_has_weights(struct hec_emitter *e) {
    return has(e, HEC_OP_cross_entropy) || has(e, HEC_OP_linear_cross_entropy);
}

MlirOperation hec_step_loads_of(struct hec_emitter *e, MlirOperation set) {
    MlirOperation found = {0};
    HEC_EACH (op, hec_ops_below(e->module)) {
        if (hec_op_computes(op) != HEC_OP_fractions || !hec_any_per_step(op)) continue;
        const MlirOperation of = hec_find_symbol(e->module, hec_any_set(op));
        if (mlirOperationIsNull(set) || mlirOperationEqual(of, set)) found = op;
    }
    return found;
}

bool hec_counts_steps(struct hec_emitter *e) {
    return !mlirOperationIsNull(hec_step_loads_of(e, (MlirOperation){0}));
}

bool hec_has_movement(struct hec_emitter *e) {
    const MlirAttribute all =
        mlirOperationGetAttributeByName(e->module, HEC_STR("hecate.movement"));
    return !mlirAttributeIsNull(all) && mlirAttributeIsADictionary(all);
}

// Where `name` stands among the symbols made by operations `op`; -1 when it does not.
static int symbol_index(struct hec_emitter *e, enum hec_op op, MlirStringRef name) {
    const struct hec_ops all = hec_ops_in(hec_module_body(e->module));
    int index = 0, found = -1;
    for (int i = 0; i < all.count && found < 0; i++) {
        if (!hec_op_is(all.op[i], op)) continue;
        if (mlirStringRefEqual(hec_any_sym_name(all.op[i]), name)) found = index;
        index++;
    }
    free(all.op);
    return found;
}

int hec_set_index(struct hec_emitter *e, MlirStringRef name) {
    return symbol_index(e, HEC_OP_set, name);
}

int hec_param_index(struct hec_emitter *e, MlirStringRef name) {
    return symbol_index(e, HEC_OP_param, name);
}

// ---- buckets of gradients

bool hec_is_bucket(MlirOperation op) {
    return hec_op_is(op, HEC_OP_all_reduce) || hec_op_is(op, HEC_OP_reduce_scatter);
}

bool hec_is_unit(MlirOperation op) {
    return hec_op_is(op, HEC_OP_all_gather) || hec_op_is(op, HEC_OP_await_gather) ||
           hec_op_is(op, HEC_OP_forget);
}

static bool same_params(MlirOperation a, MlirOperation b) {
    return mlirAttributeEqual(mlirOperationGetAttributeByName(a, HEC_STR("params")),
                              mlirOperationGetAttributeByName(b, HEC_STR("params")));
}

int hec_unit_index(struct hec_emitter *e, MlirOperation op) {
    const struct hec_ops ops = hec_ops_below(e->module);
    int index = 0;
    for (int i = 0; i < ops.count; i++) {
        if (!hec_is_unit(ops.op[i])) continue;
        int first = 0; // The first one with these parameters.
        while (!hec_is_unit(ops.op[first]) || !same_params(ops.op[first], ops.op[i])) first++;
        if (same_params(ops.op[i], op)) break;
        index += first == i;
    }
    free(ops.op);
    return index;
}

int hec_bucket_index(struct hec_emitter *e, MlirOperation op) {
    const struct hec_ops ops = hec_ops_below(e->module);
    int index = 0;
    for (int i = 0; i < ops.count && !mlirOperationEqual(ops.op[i], op); i++)
        index += hec_is_bucket(ops.op[i]);
    free(ops.op);
    return index;
}
