#include "passes/homes/prove_params.h"

#include <stdlib.h>

#include "ir/accessors.h"
#include "ir/core/home.h"
#include "ir/core/kernel.h"
#include "lang/base/vec.h"
#include "passes/base/movement.h"
#include "passes/base/packing.h"
#include "passes/homes/homes.h"

#define ELEMENTS_MAX ((int64_t)1 << 62) // Any count of elements; numbers in text may be larger.

// Elements [at, end) of the parameter buffer or, of a parameter of a set, of its chunk.
struct extent {
    MlirOperation op;
    MlirStringRef set; // Empty: the parameter buffer.
    int64_t at, end;
};

struct params {
    struct hec_arena arena;
    MlirOperation module;
    const struct hec_target *target;
    HEC_VEC(struct extent) extents;
    int64_t align; // Elements.
    bool sound;
};

static void fault(struct params *p, MlirOperation op, const char *text) {
    p->sound = hec_ir_error(op, "homes: %s", text);
}

// a * b, at most ELEMENTS_MAX; -1 when one of them is negative.
static int64_t times(int64_t a, int64_t b) {
    int64_t product;
    if (a < 0 || b < 0) return -1;
    return __builtin_mul_overflow(a, b, &product) || product > ELEMENTS_MAX ? ELEMENTS_MAX
                                                                            : product;
}

static int64_t at_least_one(int64_t layers) {
    return layers < 1 ? 1 : layers;
}

static void add(struct params *p, MlirOperation op, MlirStringRef set, int64_t at, int64_t elements,
                int64_t room) {
    if (at < 0 || at % p->align != 0 || elements < 0 || at > room || elements > room - at) {
        fault(p, op, "lies outside of the parameters, or is not aligned");
        return;
    }
    HEC_PUSH(&p->arena, &p->extents, (struct extent){op, set, at, at + elements});
}

// Weights are packed as the target can, where nothing is there but the copy in panels. Returns the places that they
// take; -1: their packing is not sound.
static int64_t packed_elements(struct params *p, MlirOperation param, int64_t rows,
                               int64_t columns) {
    const struct hec_packing *packing = hec_packing_named(p->target, hec_param_packing(param));
    if (packing && hec_param_rounded_only(param) && hec_is_panels(hec_param_layout(param)) &&
        rows < ELEMENTS_MAX / 2 / columns)
        return hec_packed_elements(packing, rows, columns, p->target->panel_columns);
    fault(p, param, "is packed as its target cannot, or is not the copy alone in panels");
    return -1;
}

// The matrix that a layer's tensor, or an expert's, is stored as.
static void check_matrix(struct params *p, MlirOperation param) {
    const bool panels = hec_is_panels(hec_param_layout(param));
    const MlirAttribute matrix = hec_param_matrix(param);
    if (!panels && !mlirStringRefEqual(hec_param_layout(param), HEC_STR("rows"))) {
        fault(p, param, "its layout is neither rows nor panels");
        return;
    }
    if (panels && p->target->panel_columns == 0) {
        fault(p, param, "lies in panels, which its target has not");
        return;
    }
    if (mlirArrayAttrGetNumElements(matrix) != 2) {
        fault(p, param, "its matrix has not two sizes");
        return;
    }
    int64_t rows = mlirIntegerAttrGetValueInt(mlirArrayAttrGetElement(matrix, 0));
    const int64_t columns = mlirIntegerAttrGetValueInt(mlirArrayAttrGetElement(matrix, 1));
    const MlirType type = hec_param_type(param);
    int64_t all = hec_type_elements(type);
    if (hec_param_has_set(param)) all /= mlirShapedTypeGetDimSize(type, 0);
    if (rows < 1 || columns < 1 || times(rows, columns) != all) {
        fault(p, param, "its matrix has another size than its type");
        return;
    }
    if (hec_param_has_packing(param)) {
        if (hec_param_elements(param) < packed_elements(p, param, rows, columns))
            fault(p, param, "its elements do not hold its packed matrix");
        return;
    }
    if (hec_param_rounded(param)) rows += rows % 2; // The copy in bf16 holds pairs of rows.
    const int64_t panel = panels ? p->target->panel_columns : 1;
    const int64_t wide = (columns + panel - 1) / panel * panel;
    if (hec_param_elements(param) < (panels ? times(rows, wide) : all))
        fault(p, param, "its elements do not hold its matrix");
}

static void add_param(struct params *p, MlirOperation param) {
    if (!hec_param_has_offset(param) || !hec_param_has_elements(param) ||
        !hec_param_has_layout(param) || !hec_param_has_matrix(param)) {
        fault(p, param, "a parameter has no place: run place-buffers first");
        return;
    }
    check_matrix(p, param);
    const int64_t offset = hec_param_offset(param), elements = hec_param_elements(param);
    if (!hec_param_has_set(param)) {
        add(p, param, HEC_STR(""), offset,
            times(at_least_one(hec_param_layers(param)),
                  hec_kept_elements(p->module, param, elements)),
            hec_module_param_elements(p->module));
        return;
    }
    const MlirOperation set = hec_find_symbol(p->module, hec_param_set(param));
    if (hec_set_has_chunk_elements(set))
        add(p, param, hec_param_set(param), offset, elements, hec_set_chunk_elements(set));
}

static void add_set(struct params *p, MlirOperation set) {
    if (!hec_set_has_offset(set) || !hec_set_has_chunk_elements(set)) {
        fault(p, set, "a set has no place: run place-buffers first");
        return;
    }
    const int64_t chunks = times(at_least_one(hec_set_layers(set)), hec_set_experts(set));
    if (hec_set_chunk_elements(set) % p->align != 0) fault(p, set, "chunks are not aligned");
    add(p, set, HEC_STR(""), hec_set_offset(set),
        times(chunks, hec_kept_elements(p->module, set, hec_set_chunk_elements(set))),
        hec_module_param_elements(p->module));
}

static void check_apart(struct params *p) {
    for (int i = 0; i < p->extents.count; i++) {
        for (int k = 0; k < i; k++) {
            const struct extent *a = &p->extents.item[i], *b = &p->extents.item[k];
            if (a->at < b->end && b->at < a->end && mlirStringRefEqual(a->set, b->set))
                fault(p, a->op, "lies where another parameter does");
        }
    }
}

// ---- what reads and writes them

// The parameter in panels that `v`, or its gradient, lies in; null: there is none.
static MlirOperation panels_of(const struct params *p, MlirValue v) {
    struct hec_home home;
    if (!hec_home_of(v, &home) || (home.kind != HEC_HOME_PARAM && home.kind != HEC_HOME_GRAD))
        return (MlirOperation){0};
    const MlirOperation param = hec_find_symbol(p->module, home.symbol);
    return hec_is_panels(hec_param_layout(param)) ? param : (MlirOperation){0};
}

static int64_t size_of(MlirOperation call, const char *name) {
    struct hec_tensor dims;
    int64_t size = 1;
    if (!hec_call_size(call, name, &dims)) return 0;
    for (int i = 0; i < dims.rank; i++) size *= dims.size[i];
    return size;
}

// Empty: it is not packed, or there is none.
static MlirStringRef packing_of(MlirOperation param) {
    return param.ptr && hec_param_has_packing(param) ? hec_param_packing(param) : HEC_STR("");
}

// The weights `v` of a call lie as it says: in the panels of the matrix that it multiplies by, or in rows.
static void check_weights(struct params *p, MlirOperation call, MlirValue v) {
    const MlirOperation param = panels_of(p, v);
    if (!hec_call_has_layout(call)) {
        fault(p, call, "does not say how its weights lie: run place-buffers first");
        return;
    }
    if (hec_is_panels(hec_call_layout(call)) == mlirOperationIsNull(param)) {
        fault(p, call, "its weights lie in another layout than it says");
        return;
    }
    if (!mlirStringRefEqual(hec_call_packing(call), packing_of(param))) {
        fault(p, call, "its weights are packed in another way than it says");
        return;
    }
    if (mlirOperationIsNull(param)) return;
    const MlirAttribute matrix = hec_param_matrix(param);
    if (mlirIntegerAttrGetValueInt(mlirArrayAttrGetElement(matrix, 0)) != size_of(call, "k") ||
        mlirIntegerAttrGetValueInt(mlirArrayAttrGetElement(matrix, 1)) != size_of(call, "n"))
        fault(p, call, "its weights lie in panels of another matrix");
}

// Only weights of calls lie in panels, and nothing else reads them.
static void check_use(struct params *p, MlirOperation op) {
    const struct hec_weights weights = hec_call_weights(op);
    const bool get = hec_op_is(op, HEC_OP_get), accumulate = hec_op_is(op, HEC_OP_accumulate);
    if (weights.operand >= 0) check_weights(p, op, hec_operand(op, weights.operand));
    if (weights.result >= 0) check_weights(p, op, hec_result(op, weights.result));
    bool sound = true;
    for (int i = 0; i < mlirOperationGetNumOperands(op) && !accumulate; i++)
        sound &= i == weights.operand || mlirOperationIsNull(panels_of(p, hec_operand(op, i)));
    for (int i = 0; i < mlirOperationGetNumResults(op) && !get; i++)
        sound &= i == weights.result || mlirOperationIsNull(panels_of(p, hec_result(op, i)));
    if (accumulate) { // Adds values from elsewhere, element by element.
        struct hec_home home;
        sound =
            (hec_home_of(hec_accumulate_value(op), &home) && home.kind == HEC_HOME_GRAD) ||
            !hec_is_panels(hec_param_layout(hec_find_symbol(p->module, hec_accumulate_param(op))));
    }
    if (!sound) fault(p, op, "takes what lies in panels for rows");
}

static void check_uses(struct params *p) {
    hec_symbols_hold(p->module);
    HEC_EACH (op, hec_ops_below(p->module)) check_use(p, op);
    hec_symbols_release();
}

bool hec_prove_params(MlirOperation module) {
    if (!hec_module_has_param_elements(module)) return true;
    struct params p = {.module = module, .target = hec_target_of(module), .sound = true};
    const struct hec_ops ops = hec_ops_in(hec_module_body(module));
    bool rounded = false;
    for (int k = 0; k < ops.count; k++)
        rounded |= hec_op_is(ops.op[k], HEC_OP_param) && hec_param_rounded(ops.op[k]);
    p.align = hec_params_align(p.target, rounded);
    for (int k = 0; k < ops.count; k++) {
        if (hec_op_is(ops.op[k], HEC_OP_param)) add_param(&p, ops.op[k]);
        if (hec_op_is(ops.op[k], HEC_OP_set)) add_set(&p, ops.op[k]);
    }
    if (p.sound) check_apart(&p);
    if (p.sound) check_uses(&p);
    free(ops.op);
    hec_arena_free(&p.arena);
    return p.sound;
}
