// inline: one function holds the whole model.
//
//   before   %h = call @attention(%x, %i)      func private @attention(%x, %i) { ... return %y }
//   after    the operations of @attention, for %x and %i the operands of the call
//
// Why      Differentiation, fusion and placement see everything at once. Upstream's inliner refuses
//          operations whose dialect has no inliner interface, and IRDL cannot give one.
// Needs    every call inside the module, no recursion.
// Leaves   no func.call, no private function. The attribute `unit` names the calls an operation came
//          from, outermost first: [@attention]. Its location tells where they are written:
//          "h"(callsite("m.moe":4:3 at "attention"("m.moe":12:9))).
// Reports  a function that calls itself, experts that are not grouped yet.
#include "ir/accessors.h"
#include "passes/base/pass.h"
#include "passes/base/rewrite.h"

#include <stdlib.h>
#include <string.h>

static MlirOperation callee_of(MlirOperation call) { // MLIR's verifier has found it.
    return hec_find_symbol(hec_module_of(call), hec_get_string(call, "callee"));
}

// Whether the calls below `func` come to an end; `depth` counts the functions on the way.
static bool ends(MlirOperation func, int depth) {
    enum { DEPTH_MAX = 64 };
    bool sound = true;
    HEC_EACH (op, hec_ops_below(func)) {
        if (!sound) break;
        if (hec_op_is(op, HEC_OP_experts))
            sound = hec_ir_error(op, "group-experts has to run before inline");
        if (!hec_op_is(op, HEC_OP_FUNC_CALL)) continue;
        if (depth == DEPTH_MAX) {
            sound = hec_ir_error(op, "calls more than %d deep: a function calls itself", DEPTH_MAX);
        } else {
            sound = ends(callee_of(op), depth + 1);
        }
    }
    return sound;
}

// "h"(own) called from `call` becomes "h"(callsite(own at "attention"(call))).
static MlirLocation at_call(MlirLocation own, MlirStringRef unit, MlirLocation call) {
    const MlirContext c = mlirLocationGetContext(own);
    const MlirStringRef name = hec_loc_name(own);
    const MlirLocation caller = mlirLocationNameGet(c, unit, hec_loc_strip(call));
    const MlirLocation site = mlirLocationCallSiteGet(hec_loc_strip(own), caller);
    return name.length ? mlirLocationNameGet(c, name, site) : site;
}

static void inline_call(MlirOperation call) {
    const MlirOperation func = callee_of(call);
    const MlirBlock body = hec_func_body(func);
    const MlirOperation ret = mlirBlockGetTerminator(body);
    struct hec_builder b = hec_builder_before(call);
    struct hec_map map = {0};
    for (int i = 0; i < mlirOperationGetNumOperands(call); i++) {
        hec_map_put(&map, mlirBlockGetArgument(body, i), hec_operand(call, i).ptr);
    }
    const MlirStringRef callee = hec_any_sym_name(func);
    const MlirAttribute unit = hec_unit_called(call, callee);
    struct hec_ops ops = hec_ops_in(body);
    for (int k = 0; k < ops.count - 1; k++) {
        const MlirOperation clone = hec_clone_mapped(&b, ops.op[k], &map);
        HEC_EACH (op, hec_ops_below(clone)) {
            const MlirLocation own = mlirOperationGetLocation(op);
            mlirOperationSetLocation(op, at_call(own, callee, b.at));
            hec_set_attr(op, hec_attr(b.context, HEC_UNIT, unit));
            hec_rows_inherit(op);
        }
    }
    for (int i = 0; i < mlirOperationGetNumResults(call); i++) {
        const MlirValue mapped = {hec_map_find(&map, hec_operand(ret, i))};
        mlirValueReplaceAllUsesOfWith(hec_result(call, i), mapped);
    }
    mlirOperationDestroy(call);
    free(ops.op);
    hec_map_free(&map);
}

static bool is_private(MlirOperation func) {
    return mlirStringRefEqual(hec_get_string(func, "sym_visibility"), HEC_STR("private"));
}

// Calls that arrive with an inlined body are met in the next round.
static bool inline_round(MlirOperation func) {
    bool any = false;
    HEC_EACH_OF (op, hec_ops_below(func), HEC_OP_FUNC_CALL) {
        inline_call(op);
        any = true;
    }
    return any;
}

static enum hec_pass_result run(MlirOperation module, const struct hec_pass_options *options) {
    (void)options;
    struct hec_ops ops = hec_ops_in(hec_module_body(module));
    bool sound = true;
    for (int k = 0; k < ops.count; k++) {
        if (hec_op_is(ops.op[k], HEC_OP_FUNC)) sound &= ends(ops.op[k], 0);
    }
    for (int k = 0; k < ops.count && sound; k++) {
        if (!hec_op_is(ops.op[k], HEC_OP_FUNC) || is_private(ops.op[k])) continue;
        while (inline_round(ops.op[k])) continue;
    }
    for (int k = 0; k < ops.count && sound; k++) {
        if (hec_op_is(ops.op[k], HEC_OP_FUNC) && is_private(ops.op[k])) {
            mlirOperationDestroy(ops.op[k]);
        }
    }
    free(ops.op);
    return sound ? HEC_PASS_DONE : HEC_PASS_REFUSED;
}

const struct hec_pass_code hec_pass_inline = {
    .run = run,
};
