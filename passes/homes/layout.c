// Layout of parameters: how each lies in memory, and where in the parameter buffer.
//
// Where the target has panels, a matrix that is only ever the right operand of GEMMs lies in panels of
// some columns, padded with zeros, which the kernels read in order. Everything else lies row-major.
// Gradients and optimizer states have the layout of their parameter, and so has the rounded copy that
// GEMMs in bf16 read, at the same offset in elements: there a panel holds pairs of rows. Every tensor
// starts at a multiple of the target's alignment.
#include <stdlib.h>

#include "ir/accessors.h"
#include "ir/core/kernel.h"
#include "passes/base/movement.h"
#include "passes/base/packing.h"
#include "passes/homes/homes.h"

static int64_t round_up(int64_t value, int64_t unit) {
    return (value + unit - 1) / unit * unit;
}

struct layout {
    MlirOperation param;
    bool panels;
    bool rounded; // Products read a copy in bf16.
    bool plain;   // Something reads it as it is.
    bool seen;    // A GEMM has said how the matrix is divided.
    bool other;   // Something else reads it, or a GEMM that divides it otherwise.
    bool turned;  // It is transposed for a GEMM.
    int64_t rows, columns;
};

static int64_t product(const struct hec_tensor *t) {
    int64_t product = 1;
    for (int i = 0; i < t->rank; i++) product *= t->size[i];
    return product;
}

static void divide(struct layout *layout, int64_t rows, int64_t columns) {
    layout->other |= layout->seen && (rows != layout->rows || columns != layout->columns);
    layout->seen = true;
    layout->rows = rows;
    layout->columns = columns;
}

// `call` must divide the matrix into k x n as all GEMMs before did. False: it does not say how.
static bool see(struct layout *layout, MlirOperation call) {
    struct hec_tensor k, n;
    if (!hec_call_size(call, "k", &k) || !hec_call_size(call, "n", &n)) {
        layout->panels = false;
        return false;
    }
    divide(layout, product(&k), product(&n));
    return true;
}

// Two GEMMs in one, by matrices of each expert: operands b and c.
static bool is_of_swiglu(MlirOperation user, int operand) {
    const enum hec_op op = hec_op_computes(user);
    return (op == HEC_OP_swiglu || op == HEC_OP_gathered_swiglu) && (operand == 1 || operand == 2);
}

// A parameter that is read: each use must be as the weights of a GEMM.
static void see_reads(struct layout *layout, MlirOperation get) {
    HEC_EACH_USE (use, hec_get_value(get)) {
        const MlirOperation user = mlirOpOperandGetOwner(use);
        const int operand = (int)mlirOpOperandGetOperandNumber(use);
        const struct hec_tensor t = hec_tensor_of(mlirValueGetType(hec_get_value(get)));
        if (is_of_swiglu(user, operand) && t.rank > 1) {
            layout->panels = false;
            divide(layout, t.size[t.rank - 2], t.size[t.rank - 1]);
        } else if (operand != hec_call_weights(user).operand || !see(layout, user)) {
            layout->panels = false;
            layout->other = true;
            layout->turned |= hec_op_is(user, HEC_OP_transpose);
        }
    }
}

// A gradient that is added: a GEMM must make it in place.
static void see_gradient(struct hec_homes *p, struct layout *layout, MlirOperation accumulate) {
    const MlirValue v = hec_accumulate_value(accumulate);
    if (hec_homes_home(p, v).kind != HEC_HOME_GRAD ||
        hec_call_weights(hec_defining(v)).result < 0) {
        layout->panels = false;
    } else {
        see(layout, hec_defining(v));
    }
}

static void see_uses(struct hec_homes *p, struct layout *layout) {
    const MlirStringRef name = hec_param_sym_name(layout->param);
    layout->panels = p->target->panel_columns > 0;
    for (int k = 1; k < p->live.ops.count; k++) {
        const MlirOperation op = p->live.ops.item[k];
        const bool get = hec_op_is(op, HEC_OP_get);
        if (!get && !hec_op_is(op, HEC_OP_accumulate)) continue;
        if (!mlirStringRefEqual(hec_any_param(op), name)) continue;
        if (get) {
            const bool rounded = hec_type_is_rounded(mlirValueGetType(hec_get_value(op)));
            *(rounded ? &layout->rounded : &layout->plain) = true;
            see_reads(layout, op);
        } else {
            see_gradient(p, layout, op);
        }
    }
    layout->panels &= layout->seen && !layout->other;
    // A copy that comes alone lies as the parameter does, element by element.
    if (hec_param_copy_alone(layout->param) && layout->rows % 2) layout->panels = false;
}

static int64_t align_elements(const struct hec_homes *p) {
    for (int k = 1; k < p->live.ops.count; k++) {
        const MlirOperation op = p->live.ops.item[k];
        if (hec_op_is(op, HEC_OP_get) && hec_type_is_rounded(mlirValueGetType(hec_get_value(op))))
            return hec_params_align(p->target, true);
    }
    return hec_params_align(p->target, false);
}

// Whether a rank that has the parameter has all of it, and shares nothing of it with others.
static bool is_whole(const struct hec_homes *p, MlirOperation param) {
    const MlirOperation set = hec_find_symbol(p->module, hec_param_set(param));
    if (!set.ptr) return !hec_shards_dense(p->module);
    return hec_set_owned(set) || !hec_has_ranks(p->module);
}

// There is nothing but the copy.
static bool is_copy_alone(const struct hec_homes *p, const struct layout *layout) {
    return layout->rounded && !layout->plain && hec_param_frozen(layout->param) &&
           is_whole(p, layout->param);
}

// Stored elements; those of packed weights are places of bf16.
static int64_t stored_elements(struct hec_homes *p, const struct layout *layout, int64_t all) {
    const int64_t rows = layout->rounded ? round_up(layout->rows, 2) : layout->rows;
    const int64_t panel = p->target->panel_columns;
    const struct hec_packing *packing = hec_packing_of(p->module, layout->param);
    if (!layout->panels) return all;
    if (!packing || !is_copy_alone(p, layout)) return rows * round_up(layout->columns, panel);
    hec_param_put_packing(layout->param, packing->name);
    return hec_packed_elements(packing, layout->rows, layout->columns, panel);
}

// Sets layout, matrix (as all GEMMs divide it, or its two dims, else one row), elements and rounded, and that Muon moves no vector; returns the elements of one layer (of one expert).
static int64_t set_layout(struct hec_homes *p, MlirOperation param, int64_t align) {
    struct layout layout = {.param = param};
    see_uses(p, &layout);
    const MlirContext c = mlirOperationGetContext(param);
    const struct hec_tensor t = hec_tensor_of(hec_param_type(param));
    const int first = hec_param_has_set(param) ? 1 : 0; // The experts' dimension is not stored.
    int64_t all = 1;
    for (int i = first; i < t.rank; i++) all *= t.size[i];
    const bool two_dims = t.rank - first == 2 && (layout.seen || layout.turned);
    if (!layout.seen ||
        layout.other) { // Products do not agree on a matrix, unless it has but two dims.
        layout.rows = two_dims ? t.size[first] : 1;
        layout.columns = all / layout.rows;
    }
    const int64_t elements = round_up(stored_elements(p, &layout, all), align);
    const MlirType i64 = mlirIntegerTypeGet(c, 64);
    const MlirAttribute matrix[] = {mlirIntegerAttrGet(i64, layout.rows),
                                    mlirIntegerAttrGet(i64, layout.columns)};
    hec_param_put_layout(param, layout.panels ? "panels" : "rows");
    hec_param_put_matrix(param, mlirArrayAttrGet(c, 2, matrix));
    hec_param_put_elements(param, elements);
    if (layout.rounded) hec_param_put_rounded(param, true);
    if (is_copy_alone(p, &layout)) hec_param_put_rounded_only(param, true);
    if (hec_param_muon(param) && (layout.rows < 2 || layout.columns < 2))
        hec_param_put_muon(param, false);
    return elements;
}

static int64_t layers_of(MlirOperation symbol) {
    const int64_t layers = hec_any_layers(symbol);
    return layers > 0 ? layers : 1;
}

enum { PADDING = 64 }; // At most a 64th of a chunk.

// Where memory comes in pages, a chunk that fills whole pages, but for a little, gets the rest of the last one. So chunks of
// different ranks share no page.
static int64_t fill_pages(int64_t page, int64_t chunk) {
    const int64_t filled = page ? (chunk + page - 1) / page * page : chunk;
    return filled - chunk <= chunk / PADDING ? filled : chunk;
}

// Large chunks begin with a page.
static int64_t first_page(int64_t page, int64_t offset, int64_t chunk) {
    return page && chunk >= page ? (offset + page - 1) / page * page : offset;
}

// The places of parameters in a chunk. It begins with those that have no copy in bf16: of the others a replica has the
// copy alone. Trained ones of both kinds are neighbours: gradients travel as one piece. Those that have nothing but the
// copy are last: in place of the rest of the parameters there is no memory.
enum place { PLAIN_FROZEN, PLAIN_TRAINED, ROUNDED_TRAINED, ROUNDED_FROZEN, ROUNDED_ONLY, PLACES };

static enum place place_of(MlirOperation param) {
    const bool trained = hec_param_trainable(param);
    if (!hec_param_rounded(param)) return trained ? PLAIN_TRAINED : PLAIN_FROZEN;
    if (trained) return ROUNDED_TRAINED;
    return hec_param_rounded_only(param) ? ROUNDED_ONLY : ROUNDED_FROZEN;
}

// Lines the parameters of a set up that have a place, from element `at` of a chunk on. Returns the end.
static int64_t line_up(const struct hec_ops *ops, MlirOperation set, enum place place, int64_t at) {
    const MlirStringRef name = hec_set_sym_name(set);
    for (int k = 0; k < ops->count; k++) {
        if (!hec_op_is(ops->op[k], HEC_OP_param) ||
            !mlirStringRefEqual(hec_any_set(ops->op[k]), name) || place_of(ops->op[k]) != place)
            continue;
        hec_any_put_offset(ops->op[k], at);
        at += hec_any_elements(ops->op[k]);
    }
    return at;
}

// Parameters of a set lie together, expert by expert: a chunk is the unit that moves between devices. Returns the end.
static int64_t place_set(const struct hec_homes *p, const struct hec_ops *ops, MlirOperation set,
                         int64_t offset) {
    int64_t chunk = 0;
    for (enum place place = 0; place < PLACES; place++) chunk = line_up(ops, set, place, chunk);
    const int64_t page =
        hec_set_owned(set) ? p->target->page_bytes / (int64_t)sizeof(float) : 0; // Elements.
    chunk = fill_pages(page, chunk);
    const int64_t begin = first_page(page, offset, chunk);
    hec_set_put_offset(set, begin);
    hec_set_put_chunk_elements(set, chunk);
    return begin + layers_of(set) * hec_set_experts(set) * hec_kept_elements(p->module, set, chunk);
}

// The parameter that `v`, or its gradient, lies in; null: none.
static MlirOperation param_of(struct hec_homes *p, MlirValue v) {
    const struct hec_home home = hec_homes_home(p, v);
    const bool kept = home.kind == HEC_HOME_PARAM || home.kind == HEC_HOME_GRAD;
    return kept ? hec_find_symbol(p->module, home.symbol) : (MlirOperation){0};
}

// Says at each call how its weights lie. Those of experts are found by chunk.
static void set_layouts(struct hec_homes *p) {
    for (int k = 1; k < p->live.ops.count; k++) {
        const MlirOperation op = p->live.ops.item[k];
        const struct hec_weights weights = hec_call_weights(op);
        if (weights.operand < 0 && weights.result < 0) continue;
        const MlirOperation param =
            param_of(p, weights.operand >= 0 ? hec_operand(op, weights.operand)
                                             : hec_result(op, weights.result));
        const bool panels = param.ptr && hec_is_panels(hec_param_layout(param));
        hec_call_put_layout(op, panels ? "panels" : "rows");
        if (param.ptr && hec_param_has_packing(param))
            hec_call_put_packing(op, hec_param_packing(param).data); // It ends with a zero.
        const bool found =
            param.ptr && hec_param_has_set(param) && (panels || p->target->panel_columns == 0);
        if (!weights.panels || found) continue;
        p->sound = hec_ir_error(op, "not yet: experts multiply by a parameter only, which only "
                                    "GEMMs of one shape read");
    }
}

void hec_homes_parameters(struct hec_homes *p) {
    struct hec_ops ops = hec_ops_in(hec_module_body(p->module));
    const int64_t align = align_elements(p);
    int64_t offset = 0;
    for (int k = 0; k < ops.count; k++) {
        if (!hec_op_is(ops.op[k], HEC_OP_param)) continue;
        const int64_t elements = set_layout(p, ops.op[k], align);
        if (hec_any_has_set(ops.op[k])) continue;
        hec_any_put_offset(ops.op[k], offset);
        offset += layers_of(ops.op[k]) * hec_kept_elements(p->module, ops.op[k], elements);
    }
    for (int k = 0; k < ops.count; k++) {
        if (hec_op_is(ops.op[k], HEC_OP_set)) offset = place_set(p, &ops, ops.op[k], offset);
    }
    hec_module_put_param_elements(p->module, offset);
    set_layouts(p);
    free(ops.op);
}
