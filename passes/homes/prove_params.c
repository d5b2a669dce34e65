#include "passes/homes/prove_params.h"

#include <stdlib.h>

#include "ir/accessors.h"
#include "lang/base/vec.h"
#include "passes/homes/homes.h"

#define ELEMENTS_MAX ((int64_t)1 << 62) // Of anything; what text says may be larger.

// Elements [at, end) of the parameter buffer or, of a parameter of a set, of its chunk.
struct extent {
    MlirOperation op;
    MlirStringRef set; // Empty: of the parameter buffer.
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
    hec_ir_error(op, "homes: %s", text);
    p->sound = false;
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

// The matrix that a layer's tensor, or an expert's, is stored as.
static void check_matrix(struct params *p, MlirOperation param) {
    const bool panels = mlirStringRefEqual(hec_param_layout(param), HEC_STR("panels"));
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
        add(p, param, HEC_STR(""), offset, times(at_least_one(hec_param_layers(param)), elements),
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
    add(p, set, HEC_STR(""), hec_set_offset(set), times(chunks, hec_set_chunk_elements(set)),
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
    free(ops.op);
    hec_arena_free(&p.arena);
    return p.sound;
}
