// Shared by the steps of distribute-experts.
#include "passes/distribute/routed.h"

#include "ir/accessors.h"

enum { OPERANDS_MAX = 8 };

void hec_routed_fail(struct hec_routed *x, MlirOperation op, const char *text) {
    x->sound = hec_ir_error(op, "%s", text);
}

bool hec_routed_has_rows(MlirValue v) {
    const MlirType type = mlirValueGetType(v);
    if (!hec_type_is_real(type)) return false;
    const struct hec_tensor t = hec_tensor_of(type);
    return hec_tensor_find(&t, HEC_STR("rows")) >= 0;
}

MlirValue hec_routed_layer(MlirOperation op) {
    const MlirOperation parent = mlirOperationGetParentOperation(op);
    return hec_op_is(parent, HEC_OP_FOR) ? hec_for_of(parent).layer : (MlirValue){0};
}

MlirOperation hec_routed_build(struct hec_builder *b, struct hec_routed *x, int id, int operands,
                               const MlirValue *operand, MlirValue wave, MlirValue layer,
                               int results, const MlirType *result) {
    MlirValue all[OPERANDS_MAX];
    int count = 0;
    for (int i = 0; i < operands; i++) all[count++] = operand[i];
    if (wave.ptr) all[count++] = wave;
    if (layer.ptr) all[count++] = layer;
    const MlirNamedAttribute set = hec_attr_symbol(b->context, "set", hec_set_sym_name(x->set));
    return hec_build_op(b, id, count, all, results, result, 1, &set);
}

MlirValue hec_routed_count(struct hec_builder *b, struct hec_routed *x, int id, MlirValue wave,
                           MlirValue layer) {
    const MlirType index = mlirIndexTypeGet(b->context);
    return hec_result(hec_routed_build(b, x, id, 0, NULL, wave, layer, 1, &index), 0);
}

MlirOperation hec_routed_stash(MlirValue v) {
    HEC_EACH_USE (use, v) {
        const MlirOperation user = mlirOpOperandGetOwner(use);
        if (hec_op_is(user, HEC_OP_stash)) return user;
    }
    return (MlirOperation){0};
}
