// The structural verifier that runs after every pass. MLIR's own checks what IRDL can say; this one
// adds what it cannot: unknown attributes, dimension names, result types, each row's own rules.
#include "ir/op.h"

#include <assert.h>
#include <string.h>

#include "ir/ops/rule.h"

enum { RESULTS_MAX = 16 };

// Attributes any of our operations may carry besides those of its row; passes add them.
static bool is_common(MlirStringRef name) {
    // place-buffers, symbols, fssdp, moe.fused (ir/ops/fused.h)
    static const char *const common[] = {
        HEC_UNIT,      "home",
        "capacity", // Of moe.experts that are not dropless.
        "drop",
        "group_score", // Of moe.router, where it is unusual.
        "adds",        "argument_home", "offset",       "stride",         "rows",
        "layout",      "matrix",        "elements",     "chunk_elements", "observed",
        "set",         "index_first",   "index_stride", "bytes",          "hides_in",
        "us",          "ahead",         "slots",        "slot_layers",    "owner",
        "forecast",    "entries",       "window_us",    "exposed_us",     "operandSegmentSizes",
        "bias_rate",   "select_bias",
        "epilogue",    // Of moe.fused: runs for each finished block of the product before.
        "rounds",      // Of products: operands become bf16.
        "rounded",     // Of parameters: products read a bf16 copy.
        "group",       // Of what counts picks: sequences of a group, which is counted alone.
        "per_step",    // Of moe.fractions.
        "grad_layers", // Of moe.set: materialize.
        "limited",     // Of moe.set, as rows_max: distribute-experts.
        "rows_max",
        "holds",    // Of moe.slot: what the runtime reads there.
        "mixture"}; // Of moe.set: the unit that calls its router and experts.
    for (size_t i = 0; i < sizeof common / sizeof *common; i++) {
        if (mlirStringRefEqual(name, HEC_STR(common[i]))) return true;
    }
    return false;
}

// Whether `name` is one of the words "name:kind name:kind ...".
static bool is_listed(const char *words, MlirStringRef name) {
    for (const char *at = words; *at;) {
        while (*at == ' ') at++;
        const size_t length = strcspn(at, ": ");
        if (length == name.length && memcmp(at, name.data, length) == 0) return true;
        at += strcspn(at, " ");
    }
    return false;
}

static bool check_attributes(MlirOperation op, const struct hec_op_row *row) {
    bool sound = true;
    for (intptr_t i = 0; i < mlirOperationGetNumAttributes(op); i++) {
        const MlirStringRef name = mlirIdentifierStr(mlirOperationGetAttribute(op, i).name);
        if (is_listed(row->attributes, name) || is_common(name)) continue;
        hec_ir_error(op, "unknown attribute '%.*s'", (int)name.length, name.data);
        sound = false;
    }
    return sound;
}

static bool check_type(MlirOperation op, const char *what, int index, MlirType type) {
    if (!mlirTypeIsARankedTensor(type)) return true;
    if (mlirShapedTypeGetRank(type) > HEC_IR_RANK_MAX) {
        hec_ir_error(op, "%s %d has more than %d dimensions", what, index, HEC_IR_RANK_MAX);
        return false;
    }
    if (!mlirShapedTypeHasStaticShape(type)) {
        hec_ir_error(op, "%s %d has a dimension without a size", what, index);
        return false;
    }
    if (!hec_type_is_sized(type)) {
        hec_ir_error(op, "%s %d is %s: too large, or empty", what, index, hec_type_text(type).text);
        return false;
    }
    const struct hec_tensor t = hec_tensor_of(type);
    for (int i = 0; i < t.rank; i++) {
        if (mlirStringRefEqual(t.dim[i], HEC_STR("?"))) {
            hec_ir_error(op, "%s %d has no dimension names", what, index);
            return false;
        }
        for (int j = 0; j < i; j++) {
            if (!mlirStringRefEqual(t.dim[i], t.dim[j])) continue;
            hec_ir_error(op, "%s %d has the dimension %.*s twice", what, index,
                         (int)t.dim[i].length, t.dim[i].data);
            return false;
        }
    }
    return true;
}

static bool check_types(MlirOperation op) {
    bool sound = true;
    for (int i = 0; i < mlirOperationGetNumOperands(op); i++) {
        sound &= check_type(op, "operand", i, mlirValueGetType(hec_operand(op, i)));
    }
    for (int i = 0; i < mlirOperationGetNumResults(op); i++) {
        sound &= check_type(op, "result", i, mlirValueGetType(hec_result(op, i)));
    }
    return sound;
}

static bool check_inferred(MlirOperation op, const struct hec_traits *traits) {
    MlirType type[RESULTS_MAX] = {{0}};
    const int results = (int)mlirOperationGetNumResults(op);
    assert(results <= RESULTS_MAX);
    if (!traits->infer(op, type)) return false;
    for (int i = 0; i < results; i++) {
        if (mlirTypeEqual(type[i], mlirValueGetType(hec_result(op, i)))) continue;
        hec_ir_error(op, "the type of result %d is not what its operands give", i);
        return false;
    }
    return true;
}

bool hec_op_verify(MlirOperation op) {
    const enum hec_op id = hec_op_of(op);
    if (!hec_unit_verify(op)) return false;
    if (id >= HEC_OP_FUNC) return true;
    const struct hec_op_row *row = hec_op_row(id);
    if (!check_attributes(op, row) || !check_types(op)) return false;
    if (row->traits->infer && !check_inferred(op, row->traits)) return false;
    return !row->traits->verify || row->traits->verify(op);
}

static MlirWalkResult verify_one(MlirOperation op, void *sound) {
    if (!hec_op_verify(op)) *(bool *)sound = false;
    return MlirWalkResultAdvance;
}

bool hec_ir_verify(MlirOperation module) {
    if (!mlirOperationVerify(module)) return false;
    bool sound = true;
    mlirOperationWalk(module, verify_one, &sound, MlirWalkPreOrder);
    return sound;
}
