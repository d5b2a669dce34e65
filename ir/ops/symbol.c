// Symbols of the module (parameters, sets of experts, slots) and what reads and writes them, keyed by
// symbol and layer.
#define _GNU_SOURCE // memmem
#include "ir/accessors.h"
#include "ir/ops/rule.h"
#include "ir/target/target.h"
#include "lang/program.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool check_top_level(MlirOperation op) {
    if (hec_op_is(mlirOperationGetParentOperation(op), HEC_OP_MODULE)) return true;
    return hec_ir_error(op, "a symbol belongs at the top level of the module");
}

static bool check_tensor(MlirOperation op, struct hec_tensor *t) {
    const MlirType type = hec_any_type(op);
    if (!mlirTypeIsARankedTensor(type) || mlirShapedTypeGetRank(type) > HEC_IR_RANK_MAX ||
        !mlirShapedTypeHasStaticShape(type))
        return hec_ir_error(op, "type is %s, expected a tensor of at most %d dimensions with sizes",
                            hec_type_text(type).text, HEC_IR_RANK_MAX);
    if (!hec_type_is_sized(type))
        return hec_ir_error(op, "type is %s: too large, or empty", hec_type_text(type).text);
    *t = hec_tensor_of(type);
    for (int i = 0; i < t->rank; i++) {
        const bool twice = hec_tensor_find(t, t->dim[i]) != i;
        if (!mlirStringRefEqual(t->dim[i], HEC_STR("?")) && !twice) continue;
        return hec_ir_error(
            op, twice ? "the dimension %.*s is twice in type" : "type has no names (%.*s)",
            (int)t->dim[i].length, t->dim[i].data);
    }
    return true;
}

// At most what keeps products of sizes in range.
static bool check_count(MlirOperation op, const char *key, int64_t least, int64_t most) {
    if (hec_get_int(op, key) <= most) return hec_expect_int(op, key, least);
    return hec_ir_error(op, "%s is %" PRId64 ", expected at most %" PRId64, key,
                        hec_get_int(op, key), most);
}

static bool check_layers(MlirOperation op) {
    return check_count(op, "layers", 0, HEC_IR_LAYERS_MAX);
}

// The attributes that each initializer needs, and the scaling of rope, which it may have.
static const struct {
    const char *init, *needs[2];
    bool scales;
} initializers[] = {{"zeros", {0}, false},
                    {"ones", {0}, false},
                    {"normal", {"deviation"}, false},
                    {"rope", {"theta"}, true}};
static const char *const scaling[] = {"factor", "low", "high", "amplitude"};
static const char *const numbers[] = {"deviation", "theta", "factor", "low", "high", "amplitude"};

// The ramp from `low` to `high`: elements or, with `original`, turns in so many positions.
static bool check_ramp(MlirOperation op) {
    const double low = hec_any_low(op), high = hec_any_high(op);
    const bool turns = hec_any_has_original(op);
    if (!(hec_any_factor(op) > 0) || (turns ? low > high : low >= high))
        return hec_ir_error(op, "factor must be positive, low less than high");
    if (!turns || (isfinite(hec_any_original(op)) && hec_any_original(op) > 0)) return true;
    return hec_ir_error(op, "original is %g, expected a positive number", hec_any_original(op));
}

static bool is_listed(const char *key, const char *const *keys, int count) {
    for (int i = 0; i < count; i++) {
        if (keys[i] && strcmp(key, keys[i]) == 0) return true;
    }
    return false;
}

// Exactly the numbers in `needs` and, when it `scales`, all of rope's scaling; finite ones.
static bool check_numbers(MlirOperation op, const char *init, const char *const *needs,
                          bool scales) {
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        const bool wanted =
            is_listed(numbers[i], needs, 2) || (scales && is_listed(numbers[i], scaling, 4));
        if (wanted != hec_has_attr(op, numbers[i]))
            return hec_ir_error(
                op, wanted ? "init is %s, which needs %s" : "init is %s, which has no %s", init,
                numbers[i]);
        if (!wanted || isfinite(hec_get_float(op, numbers[i]))) continue;
        return hec_ir_error(op, "%s is no finite number", numbers[i]);
    }
    if (scales) return check_ramp(op);
    if (!hec_any_has_original(op)) return true;
    return hec_ir_error(op, "init is %s, which has no original", init);
}

static bool check_init(MlirOperation op) {
    const MlirStringRef init = hec_any_init(op);
    for (size_t i = 0; i < sizeof initializers / sizeof *initializers; i++) {
        if (!mlirStringRefEqual(init, HEC_STR(initializers[i].init))) continue;
        const bool scales = initializers[i].scales && hec_any_has_factor(op);
        return check_numbers(op, initializers[i].init, initializers[i].needs, scales);
    }
    return hec_ir_error(op, "init is \"%.*s\", expected zeros, ones, normal or rope",
                        (int)init.length, init.data);
}

static bool is_in(MlirStringRef text, const char *part) {
    return memmem(text.data, text.length, part, strlen(part)) != NULL;
}

static bool check_set(MlirOperation op, const struct hec_tensor *t) {
    const MlirStringRef name = hec_any_set(op);
    const MlirOperation set = hec_find_symbol(hec_module_of(op), name);
    if (!hec_op_is(set, HEC_OP_set))
        return hec_ir_error(op, "there is no moe.set @%.*s", (int)name.length, name.data);
    if (t->rank == 0 || t->size[0] != hec_set_experts(set))
        return hec_ir_error(op, "type does not start with the %" PRId64 " experts of @%.*s",
                            hec_set_experts(set), (int)name.length, name.data);
    if (hec_any_layers(op) == hec_set_layers(set)) return true;
    return hec_ir_error(op, "%" PRId64 " layers, but @%.*s has %" PRId64, hec_any_layers(op),
                        (int)name.length, name.data, hec_set_layers(set));
}

// Two numbers of each layer: a factor of the learning rate, and a decay, of which -1 is none.
static bool check_rates(MlirOperation op) {
    const MlirAttribute rates = hec_any_layer_rates(op);
    const intptr_t count = mlirDenseArrayGetNumElements(rates);
    bool sound = count > 0 && count == 2 * hec_any_layers(op) && !hec_any_has_lr_scale(op) &&
                 !hec_any_has_decay_rate(op);
    for (intptr_t i = 0; sound && i < count; i += 2) {
        const double scale = mlirDenseF64ArrayGetElement(rates, i);
        const double decay = mlirDenseF64ArrayGetElement(rates, i + 1);
        sound = isfinite(scale) && scale > 0 && isfinite(decay) && (decay >= 0 || decay == -1);
    }
    if (!sound)
        hec_ir_error(op, "layer_rates are not a positive number and a decay of each layer, or are "
                         "beside rates of all layers");
    return sound;
}

// Checks the attributes that a group of parameters gives.
static bool check_group(MlirOperation op) {
    static const char *const factors[] = {"lr_scale", "decay_rate"};
    if (hec_any_frozen(op) && hec_any_trainable(op))
        return hec_ir_error(op, "is frozen and trainable");
    if (hec_any_muon(op) && !hec_any_trainable(op))
        return hec_ir_error(op, "is Muon's and not trainable");
    const MlirStringRef lora = hec_any_lora(op);
    if (hec_any_has_lora(op) && !mlirStringRefEqual(lora, HEC_STR("a")) &&
        !mlirStringRefEqual(lora, HEC_STR("b")))
        return hec_ir_error(op, "lora is \"%.*s\", expected a or b", (int)lora.length, lora.data);
    if (hec_any_has_layer_rates(op) && !check_rates(op)) return false;
    for (int i = 0; i < 2; i++) {
        if (!hec_has_attr(op, factors[i])) continue;
        const double value = hec_get_float(op, factors[i]);
        if (isfinite(value) && value > 0) continue;
        return hec_ir_error(op, "%s is %g, expected a positive number", factors[i], value);
    }
    return true;
}

// Files name parameters by their paths, programs read no longer ones.
static bool check_path(MlirOperation op, MlirStringRef path, const struct hec_tensor *t) {
    const bool layered =
        hec_any_layers(op) > 0 && hec_any_has_index_first(op) && hec_any_has_index_stride(op);
    int64_t last = 0;
    if (layered &&
        (__builtin_mul_overflow(hec_any_layers(op) - 1, hec_any_index_stride(op), &last) ||
         __builtin_add_overflow(last, hec_any_index_first(op), &last)))
        return hec_ir_error(op, "the number of its last layer does not fit in 64 bits");
    char *text = hec_checked(calloc(path.length + 1, 1));
    memcpy(text, path.data, path.length);
    const int64_t length = hec_path_length(text, last, t->rank > 0 ? t->size[0] - 1 : 0);
    free(text);
    if (length <= HEC_PATH_MAX) return true;
    return hec_ir_error(op, "its path has %" PRId64 " bytes, at most %d", length, HEC_PATH_MAX);
}

static bool verify_param(MlirOperation op) {
    struct hec_tensor t;
    if (!check_top_level(op) || !check_tensor(op, &t) || !check_layers(op) || !check_init(op)) {
        return false;
    }
    if (!hec_type_is_real(hec_any_type(op)))
        return hec_ir_error(op, "type is %s, expected a tensor of f32 or f64",
                            hec_type_text(hec_any_type(op)).text);
    const MlirStringRef path = hec_any_path(op);
    if (!check_path(op, path, &t)) return false;
    if ((hec_any_layers(op) > 0) != is_in(path, "{}") || hec_any_has_set(op) != is_in(path, "{e}"))
        return hec_ir_error(op, "path is \"%.*s\"; {} stands for the layer, {e} for the expert",
                            (int)path.length, path.data);
    if (hec_any_layers(op) > 0 && (!hec_any_has_index_first(op) || !hec_any_has_index_stride(op)))
        return hec_ir_error(op, "a parameter with layers needs index_first and index_stride");
    if (hec_any_layers(op) > 0 && (hec_any_index_first(op) < 0 || hec_any_index_stride(op) < 1))
        return hec_ir_error(op, "iterations go from %" PRId64 " in steps of %" PRId64,
                            hec_any_index_first(op), hec_any_index_stride(op));
    return check_group(op) && (!hec_any_has_set(op) || check_set(op, &t));
}

static bool verify_set(MlirOperation op) {
    if (!check_top_level(op) || !check_count(op, "experts", 1, HEC_IR_EXPERTS_MAX) ||
        !check_count(op, "topk", 1, HEC_IR_EXPERTS_MAX) || !check_layers(op)) {
        return false;
    }
    if (hec_any_topk(op) <= hec_any_experts(op)) return true;
    return hec_ir_error(op, "topk is %" PRId64 " of %" PRId64 " experts", hec_any_topk(op),
                        hec_any_experts(op));
}

static bool is_text(MlirStringRef text, const char *what) {
    return mlirStringRefEqual(text, HEC_STR(what));
}

// The logits of a named loss, which predict the token `ahead` positions on, or its losses of tokens.
static bool check_loss(MlirOperation op) {
    const bool named = is_text(hec_any_holds(op), "loss") || is_text(hec_any_holds(op), "losses");
    if (hec_any_has_loss(op) == named && hec_any_has_ahead(op) == named &&
        hec_any_has_coef(op) == named && (!named || hec_any_ahead(op) > 0))
        return true;
    return hec_ir_error(
        op, "loss, ahead (at least 1) and coef belong to what holds the logits of a loss, "
            "or its losses");
}

// The runtime's slots: the loads of a set in each layer, or logits, those of a named loss, too, or losses.
static bool check_holds(MlirOperation op, const struct hec_tensor *t) {
    const MlirStringRef holds = hec_any_holds(op);
    const bool real = hec_type_is_real(hec_type_unrounded(hec_any_type(op)));
    if (!hec_any_observed(op))
        return hec_ir_error(op, "holds what the runtime reads, but is not observed");
    if (is_text(holds, "logits") || is_text(holds, "loss")) {
        const bool block = t->rank == 2 && mlirStringRefEqual(t->dim[0], HEC_STR("block"));
        if (real && (t->rank == 3 || block) && !hec_any_layers(op)) return true;
        return hec_ir_error(
            op, "type is %s, expected logits of all tokens, or of a block, without layers",
            hec_type_text(hec_any_type(op)).text);
    }
    if (is_text(holds, "losses")) {
        if (real && t->rank == 2 && !hec_any_layers(op)) return true;
        return hec_ir_error(op, "type is %s, expected a loss of each token, without layers",
                            hec_type_text(hec_any_type(op)).text);
    }
    if (!is_text(holds, "loads"))
        return hec_ir_error(op, "holds is \"%.*s\", expected loads, logits, loss or losses",
                            (int)holds.length, holds.data);
    if (!real && t->rank == 1) return check_set(op, t);
    return hec_ir_error(op, "type is %s, expected a count for each expert",
                        hec_type_text(hec_any_type(op)).text);
}

// Whether another slot holds the same: the runtime would read one of them.
static bool check_alone(MlirOperation op) {
    const MlirStringRef holds = hec_any_holds(op), set = hec_any_set(op);
    for (MlirOperation other = mlirOperationGetNextInBlock(op); !mlirOperationIsNull(other);
         other = mlirOperationGetNextInBlock(other)) {
        if (!hec_op_is(other, HEC_OP_slot) || !hec_any_has_holds(other) ||
            !mlirStringRefEqual(hec_any_holds(other), holds) ||
            !mlirStringRefEqual(hec_any_set(other), set) ||
            !mlirStringRefEqual(hec_any_loss(other), hec_any_loss(op)))
            continue;
        return hec_ir_error(other, "another slot holds the same %.*s", (int)holds.length,
                            holds.data);
    }
    return true;
}

static bool verify_slot(MlirOperation op) {
    struct hec_tensor t;
    if (!check_top_level(op) || !check_tensor(op, &t) || !check_layers(op)) return false;
    if (hec_type_is_rounded(hec_any_type(op)) && !hec_target_of(op)->bf16_values)
        return hec_ir_error(op, "keeps bf16, which values of this target are not");
    if (!check_loss(op)) return false;
    return !hec_any_has_holds(op) || (check_holds(op, &t) && check_alone(op));
}

// The index of a loop over layers runs no further than `symbol` has layers.
static bool check_layer(MlirOperation op, MlirOperation symbol) {
    const MlirValue layer = hec_layer_of(op);
    if (!layer.ptr) return true;
    const MlirOperation around = mlirBlockGetParentOperation(hec_block_of(layer));
    if (!hec_op_is(around, HEC_OP_FOR)) return true;
    const struct hec_for loop = hec_for_of(around);
    if (!mlirValueEqual(layer, loop.layer) || loop.count <= hec_any_layers(symbol)) return true;
    const MlirStringRef name = hec_any_sym_name(symbol);
    return hec_ir_error(op, "the loop runs over %" PRId64 " layers, @%.*s has %" PRId64, loop.count,
                        (int)name.length, name.data, hec_any_layers(symbol));
}

// `found` is the type that `op` reads from or writes to the symbol named by `key`.
static bool check_access(MlirOperation op, const char *key, enum hec_op kind, MlirType found) {
    const bool layered = !mlirValueIsNull(hec_layer_of(op));
    const MlirStringRef name = hec_get_string(op, key);
    const MlirOperation symbol = hec_find_symbol(hec_module_of(op), name);
    if (!hec_op_is(symbol, kind))
        return hec_ir_error(op, "there is no %s @%.*s", hec_op_row(kind)->name, (int)name.length,
                            name.data);
    const MlirType type = hec_any_type(symbol);
    if (!mlirTypeEqual(type, found))
        return hec_ir_error(op, "the value is %s, but @%.*s is %s", hec_type_text(found).text,
                            (int)name.length, name.data, hec_type_text(type).text);
    if ((hec_any_layers(symbol) > 0) == layered) return check_layer(op, symbol);
    return hec_ir_error(op, layered ? "@%.*s has no layers" : "@%.*s has layers: which one?",
                        (int)name.length, name.data);
}

// A parameter of f32 may be read as its copy rounded to bf16.
static bool verify_get(MlirOperation op) {
    return check_access(op, "param", HEC_OP_param,
                        hec_type_unrounded(mlirValueGetType(hec_get_value(op))));
}

static bool verify_fetch(MlirOperation op) {
    return check_access(op, "slot", HEC_OP_slot, mlirValueGetType(hec_fetch_value(op)));
}

static bool verify_stash(MlirOperation op) {
    return check_access(op, "slot", HEC_OP_slot, mlirValueGetType(hec_stash_value(op)));
}

static bool verify_accumulate(MlirOperation op) {
    if (!check_access(op, "param", HEC_OP_param, mlirValueGetType(hec_accumulate_value(op)))) {
        return false;
    }
    const MlirStringRef name = hec_any_param(op);
    if (hec_any_trainable(hec_find_symbol(hec_module_of(op), name))) return true;
    return hec_ir_error(op, "@%.*s is not trainable", (int)name.length, name.data);
}

// The gradient of reading a parameter is adding to its gradient, as soon as it is known: that ends
// the value's life, and lets a reduction start.
static void gradient_get(struct hec_gradient *g, MlirOperation op) {
    const MlirStringRef name = hec_any_param(op);
    if (!hec_any_trainable(hec_find_symbol(hec_module_of(op), name))) return;
    const MlirValue d = g->of(g, hec_get_value(op), false);
    if (mlirValueIsNull(d)) return;
    const MlirValue index = hec_get_layer(op);
    const bool layered = !mlirValueIsNull(index);
    MlirValue in[2] = {d};
    if (layered) in[1] = g->primal(g, index);
    const MlirNamedAttribute param = hec_attr_symbol(g->builder->context, "param", name);
    const MlirOperation add =
        hec_build_op(g->builder, HEC_OP_accumulate, layered ? 2 : 1, in, 0, NULL, 1, &param);
    const MlirOperation maker = hec_defining(d);
    const MlirOperation layer = layered ? hec_defining(in[1]) : (MlirOperation){0};
    if (mlirOperationIsNull(maker) ||
        !mlirBlockEqual(mlirOperationGetBlock(maker), mlirOperationGetBlock(add))) {
        return;
    }
    const bool layer_later =
        !mlirOperationIsNull(layer) &&
        mlirBlockEqual(mlirOperationGetBlock(layer), mlirOperationGetBlock(maker)) &&
        mlirOperationIsBeforeInBlock(maker, layer);
    if (!layer_later) mlirOperationMoveAfter(add, maker);
}

// Reading and keeping move nothing: the value is used, or computed, where it lies.
static struct hec_cost cost_free(MlirOperation op) {
    (void)op;
    return (struct hec_cost){0};
}

static struct hec_cost cost_accumulate(MlirOperation op) {
    const MlirType type = mlirValueGetType(hec_accumulate_value(op));
    return (struct hec_cost){.flops = (double)hec_type_elements(type),
                             .bytes = 3 * (double)hec_type_bytes(type)};
}

const struct hec_traits hec_traits_param = {.verify = verify_param, .cost = cost_free};
const struct hec_traits hec_traits_set = {.verify = verify_set, .cost = cost_free};
const struct hec_traits hec_traits_slot = {.verify = verify_slot, .cost = cost_free};
const struct hec_traits hec_traits_get = {
    .pure = true, .verify = verify_get, .gradient = gradient_get, .cost = cost_free};
const struct hec_traits hec_traits_accumulate = {.verify = verify_accumulate,
                                                 .cost = cost_accumulate};
const struct hec_traits hec_traits_stash = {.verify = verify_stash, .cost = cost_free};
const struct hec_traits hec_traits_fetch = {
    .pure = true, .verify = verify_fetch, .cost = cost_free};
