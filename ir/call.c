// hk.call: checked as the operation that its kernel computes, with the kernel and the sizes that this
// operation gets.
#include "ir/accessors.h"
#include "ir/core/kernel.h"
#include "ir/core/signature.h"
#include "ir/ops/fused.h"
#include "ir/ops/rule.h"
#include "ir/target/target.h"

enum { ATTRIBUTES_MAX = 24 };

// Whether the operation that a kernel computes has the attribute.
static bool is_of(MlirStringRef name, enum hec_op computes) {
    struct hec_word word;
    return hec_find_word(hec_op_row(computes)->attributes, name, &word);
}

// Which operands a call has of the operation that it computes, as that one says it.
static MlirNamedAttribute operands_of(MlirOperation op, const char *words) {
    int32_t has[HEC_CALL_OPERANDS] = {0};
    struct hec_word word;
    int count = 0;
    for (; (words = hec_next_word(words, &word)); count++)
        has[count] = !mlirValueIsNull(hec_optional_operand(op, count));
    return hec_attr_operands(mlirOperationGetContext(op), count, has);
}

MlirOperation hec_call_operation(MlirOperation op) {
    const struct hec_call call = hec_call_of(op);
    const enum hec_op computes = hec_op_computes(op);
    MlirNamedAttribute attribute[ATTRIBUTES_MAX];
    int attributes = 0;
    for (intptr_t i = 0; i < mlirOperationGetNumAttributes(op); i++) {
        attribute[attributes] = mlirOperationGetAttribute(op, i);
        attributes += is_of(mlirIdentifierStr(attribute[attributes].name), computes);
        if (attributes == ATTRIBUTES_MAX - 1) break;
    }
    if (hec_has_segments(hec_op_row(computes)->operands))
        attribute[attributes++] = operands_of(op, hec_op_row(computes)->operands);
    MlirValue operand[HEC_CALL_OPERANDS];
    MlirType type[HEC_CALL_RESULTS];
    for (int i = 0; i < call.operands; i++) operand[i] = hec_operand(op, i);
    for (int i = 0; i < call.results; i++) type[i] = mlirValueGetType(hec_result(op, i));
    struct hec_builder b = hec_builder_before(op);
    b.unit = (MlirAttribute){0};
    return hec_build_op(&b, computes, call.operands, operand, call.results, type, attributes,
                        attribute);
}

// ---- sizes

bool hec_call_size(MlirOperation op, const char *name, struct hec_tensor *dims) {
    const MlirAttribute list = mlirOperationGetAttributeByName(op, HEC_STR(name));
    *dims = (struct hec_tensor){0};
    if (mlirAttributeIsNull(list) || !mlirAttributeIsAArray(list)) return false;
    const struct hec_call call = hec_call_of(op);
    for (intptr_t i = 0; i < mlirArrayAttrGetNumElements(list); i++) {
        const MlirAttribute word = mlirArrayAttrGetElement(list, i);
        if (!mlirAttributeIsAString(word) || dims->rank == HEC_IR_RANK_MAX) return false;
        const MlirStringRef dim = mlirStringAttrGetValue(word);
        bool found = false;
        for (int k = 0; !found && k < call.operands + call.results; k++) {
            const MlirValue v =
                k < call.operands ? hec_operand(op, k) : hec_result(op, k - call.operands);
            if (!mlirTypeIsARankedTensor(mlirValueGetType(v))) continue;
            const struct hec_tensor t = hec_tensor_of(mlirValueGetType(v));
            const int at = hec_tensor_find(&t, dim);
            if (at < 0) continue;
            hec_tensor_append(dims, dim, t.size[at]);
            found = true;
        }
        if (!found) return false;
    }
    return true;
}

// ---- checks

static bool check_sizes(MlirOperation op, const struct hec_choice *choice) {
    for (int i = 0; i < choice->sizes; i++) {
        struct hec_tensor dims;
        if (hec_call_size(op, choice->size[i].name, &dims) &&
            hec_same_dims(&dims, &choice->size[i].dims))
            continue;
        return hec_ir_error(op, "the size '%s' is not that of its operands", choice->size[i].name);
    }
    return true;
}

// As the operation that is computed: its own checks, and that this kernel is the one for it.
static bool check_operation(MlirOperation op, const struct hec_kernel *kernel) {
    const MlirOperation twin = hec_call_operation(op);
    const struct hec_choice choice = hec_choose_kernel(twin);
    bool sound = hec_op_verify(twin);
    if (sound && choice.kernel != kernel)
        sound = hec_ir_error(op, "%s is not the kernel for these operands", kernel->name);
    sound = sound && check_sizes(op, &choice);
    mlirOperationDestroy(twin);
    return sound;
}

static bool check_onto(MlirOperation op, const struct hec_call *call) {
    if (mlirValueIsNull(call->onto)) return true;
    if (!(hec_op_traits(op)->adds & 1))
        return hec_ir_error(op, "this kernel cannot add to an operand");
    if (mlirTypeEqual(mlirValueGetType(call->onto), mlirValueGetType(hec_result(op, 0))))
        return true;
    return hec_ir_error(op, "the summand has another type than the result");
}

static bool check_layout(MlirOperation op) {
    if (!hec_call_has_layout(op)) return true; // place-buffers says it.
    const MlirStringRef layout = hec_call_layout(op);
    const struct hec_weights weights = hec_call_weights(op);
    const bool panels = hec_is_panels(layout), has = hec_target_of(op)->panel_columns > 0;
    if (weights.operand < 0 && weights.result < 0) {
        hec_ir_error(op, "has a layout, but its kernel has no weights");
    } else if (!panels && !mlirStringRefEqual(layout, HEC_STR("rows"))) {
        hec_ir_error(op, "layout is \"%.*s\"", (int)layout.length, layout.data);
    } else if (panels && !has) {
        hec_ir_error(op, "has weights in panels, which its target has not");
    } else if (!panels && hec_call_has_packing(op)) {
        hec_ir_error(op, "has packed weights in rows");
    } else if (!panels && has && weights.panels) {
        hec_ir_error(op, "has weights in rows, but its kernel takes panels");
    } else {
        return true;
    }
    return false;
}

static bool verify(MlirOperation op) {
    const struct hec_kernel *kernel = hec_kernel_of(op);
    const struct hec_op_row *row = hec_op_row(kernel->computes);
    const struct hec_call call = hec_call_of(op);
    if (call.results < 1 || !hec_fits_signature(row->operands, call.operands) ||
        !hec_fits_signature(row->results, call.results))
        return hec_ir_error(op, "has not the operands and results of %s", row->name);
    struct hec_word word;
    for (const char *at = row->attributes; (at = hec_next_word(at, &word));) {
        if (word.repeat || hec_has_attr(op, word.name)) continue;
        return hec_ir_error(op, "has no attribute '%s'", word.name);
    }
    return check_operation(op, kernel) && check_onto(op, &call) && check_layout(op) &&
           hec_verify_block(op);
}

// A call costs as much as the operation that it computes.
static struct hec_cost call_cost(MlirOperation call) {
    const MlirOperation operation = hec_call_operation(call);
    const struct hec_cost cost = hec_op_cost(operation);
    mlirOperationDestroy(operation);
    return cost;
}

// A call has the traits of the operation that it computes: hec_op_traits asks that one.
const struct hec_traits hec_traits_call = {.pure = true, .verify = verify, .cost = call_cost};
