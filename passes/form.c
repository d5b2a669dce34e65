// The form of a module: less than func, scf and arith allow.
#include "passes/form.h"

#include <stdlib.h>
#include <string.h>

#include "ir/accessors.h"
#include "passes/base/movement.h"

enum { BOUNDS = 3, LAYERS_MAX = 1 << 16 }; // scf.for's.

static bool is_one_block(MlirOperation op) {
    const MlirBlock block = mlirRegionGetFirstBlock(mlirOperationGetRegion(op, 0));
    return !mlirBlockIsNull(block) && mlirBlockIsNull(mlirBlockGetNextInRegion(block));
}

static bool check_func(MlirOperation op) {
    if (!hec_op_is(mlirOperationGetParentOperation(op), HEC_OP_MODULE))
        return hec_ir_error(op, "belongs at the top level of the module");
    if (is_one_block(op)) return true;
    return hec_ir_error(op, "needs a body of one block");
}

// Stores the value of a constant; false when `v` is none.
static bool read_constant(MlirValue v, int64_t *value) {
    const MlirOperation op = hec_defining(v);
    if (!hec_op_is(op, HEC_OP_CONSTANT) || !mlirTypeIsAIndex(mlirValueGetType(v))) return false;
    *value = hec_get_int(op, "value");
    return true;
}

// A loop over waves carries nothing, and fssdp says how often it runs.
static bool is_repeat(MlirOperation op) {
    const MlirOperation count = hec_defining(hec_operand(op, 1));
    int64_t first, step;
    return (hec_op_is(count, HEC_OP_waves) || hec_op_is(count, HEC_OP_overwritten)) &&
           mlirOperationGetNumResults(op) == 0 && read_constant(hec_operand(op, 0), &first) &&
           read_constant(hec_operand(op, 2), &step) && first == 0 && step == 1;
}

static bool check_for(MlirOperation op) {
    if (is_repeat(op)) return true;
    int64_t bound[BOUNDS] = {0};
    bool sound = true;
    for (int i = 0; i < BOUNDS; i++) sound &= read_constant(hec_operand(op, i), &bound[i]);
    if (!sound || bound[0] != 0 || bound[2] != 1 || bound[1] < 1 || bound[1] > LAYERS_MAX)
        return hec_ir_error(op, "counts from a constant 0 to a constant number of layers, step 1");
    for (int i = 0; i < mlirOperationGetNumResults(op); i++) {
        if (mlirTypeIsARankedTensor(mlirValueGetType(hec_result(op, i)))) continue;
        return hec_ir_error(op, "carries something that is no tensor");
    }
    return true;
}

static bool check_index(MlirOperation op) {
    if (mlirTypeIsAIndex(mlirValueGetType(hec_result(op, 0)))) return true;
    return hec_ir_error(op, "only an index may be computed so");
}

// Checks that an operation with a set names one of the set's layers.
static bool check_constant_layer(MlirOperation op, int64_t layer) {
    const MlirOperation set = hec_any_has_set(op)
                                  ? hec_find_symbol(hec_module_of(op), hec_any_set(op))
                                  : (MlirOperation){0};
    if (!hec_op_is(set, HEC_OP_set) || (layer >= 0 && layer < hec_set_layers(set))) return true;
    return hec_ir_error(op, "is of layer %" PRId64 ", but its set has %" PRId64, layer,
                        hec_set_layers(set));
}

// A layer is a constant, that of a loop over layers or, in a function that is not inlined yet, an argument.
static bool check_layer(MlirOperation op) {
    const MlirValue layer = hec_layer_of(op);
    if (mlirValueIsNull(layer)) return true;
    if (hec_op_is(hec_defining(layer), HEC_OP_CONSTANT))
        return check_constant_layer(op, hec_get_int(hec_defining(layer), "value"));
    const MlirOperation around = mlirBlockGetParentOperation(hec_block_of(layer));
    if (hec_op_is(around, HEC_OP_FUNC) && mlirValueIsABlockArgument(layer)) return true;
    if (hec_op_is(around, HEC_OP_FOR)) {
        const struct hec_for loop = hec_for_of(around);
        if (loop.count != HEC_COUNT_AT_RUN_TIME && mlirValueEqual(layer, loop.layer)) return true;
    }
    return hec_ir_error(op, "the layer is neither a constant nor that of the loop around");
}

static bool check(MlirOperation op) {
    switch (hec_op_of(op)) {
    case HEC_OP_FUNC:
        return check_func(op);
    case HEC_OP_FOR:
        return check_for(op);
    case HEC_OP_CONSTANT:
    case HEC_OP_ADDI:
    case HEC_OP_SUBI:
        return check_index(op);
    case HEC_OP_MODULE:
        if (mlirOperationIsNull(mlirOperationGetParentOperation(op))) return true;
        return hec_ir_error(op, "a module inside a module is not used");
    case HEC_OP_OTHER:
        return hec_ir_error(op, "is not an operation of this IR");
    default:
        return check_layer(op);
    }
}

static MlirWalkResult visit(MlirOperation op, void *sound) {
    if (!check(op)) *(bool *)sound = false;
    return MlirWalkResultAdvance;
}

// ---- paths of parameters: their names in files

// The layers' iterations of a parameter: first, first + stride, ... `layers` of them; one without layers.
struct iterations {
    int64_t first, stride, layers;
};

static struct iterations iterations_of(MlirOperation param) {
    const int64_t layers = hec_any_layers(param);
    if (layers < 1) return (struct iterations){.layers = 1};
    return (struct iterations){hec_any_index_first(param), hec_any_index_stride(param), layers};
}

static bool share_path(MlirOperation a, MlirOperation b) {
    const struct iterations one = iterations_of(a), other = iterations_of(b);
    for (int64_t i = 0; i < one.layers; i++) {
        const __int128 from = (__int128)i * one.stride + one.first - other.first;
        if (other.stride == 0 ? from == 0
                              : from % other.stride == 0 && from / other.stride >= 0 &&
                                    from / other.stride < other.layers)
            return true;
    }
    return false;
}

static int by_path(const void *a, const void *b) {
    const MlirStringRef x = hec_any_path(*(const MlirOperation *)a);
    const MlirStringRef y = hec_any_path(*(const MlirOperation *)b);
    const int order = memcmp(x.data, y.data, x.length < y.length ? x.length : y.length);
    return order ? order : (x.length > y.length) - (x.length < y.length);
}

static bool check_paths(MlirOperation module) {
    struct hec_ops ops = hec_ops_in(hec_module_body(module));
    int params = 0;
    bool sound = true;
    for (int k = 0; k < ops.count; k++) {
        if (hec_op_is(ops.op[k], HEC_OP_param)) ops.op[params++] = ops.op[k];
    }
    if (params > 0) qsort(ops.op, (size_t)params, sizeof *ops.op, by_path);
    for (int k = 1; k < params; k++) {
        for (int i = k - 1; i >= 0 && by_path(&ops.op[i], &ops.op[k]) == 0; i--) {
            if (!share_path(ops.op[i], ops.op[k])) continue;
            sound = hec_ir_error(ops.op[k], "has the path of another parameter");
            break;
        }
    }
    free(ops.op);
    return sound;
}

// ---- slots

static const void *slot_key(MlirOperation op) { // Attributes are unique in a context.
    return mlirOperationGetAttributeByName(op, HEC_STR("slot")).ptr;
}

static bool check_fetches(MlirOperation module) {
    const struct hec_ops ops = hec_ops_below(module);
    struct hec_map stashed = {0};
    bool sound = true;
    for (int k = 0; k < ops.count; k++) {
        if (hec_op_is(ops.op[k], HEC_OP_stash)) *hec_map_at(&stashed, slot_key(ops.op[k])) = 1;
    }
    for (int k = 0; k < ops.count; k++) {
        if (!hec_op_is(ops.op[k], HEC_OP_fetch) || hec_map_get(&stashed, slot_key(ops.op[k])))
            continue;
        sound = hec_ir_error(ops.op[k], "nothing is stashed in its slot");
    }
    hec_map_free(&stashed);
    free(ops.op);
    return sound;
}

bool hec_check_form(MlirOperation module) {
    static const char *const entry[] = {"forward", "backward"};
    bool sound = hec_movement_check(module) && check_paths(module) && check_fetches(module);
    mlirOperationWalk(module, visit, &sound, MlirWalkPreOrder);
    for (int e = 0; e < 2 && sound; e++) {
        const MlirOperation op = hec_find_symbol(module, HEC_STR(entry[e]));
        if (mlirOperationIsNull(op) || hec_op_is(op, HEC_OP_FUNC)) continue;
        sound = hec_ir_error(op, "@%s has to be a function", entry[e]);
    }
    return sound;
}
