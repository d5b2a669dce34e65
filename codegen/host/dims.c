// Dimensions as C constants. `batch` and `rows` are variables: a call may have fewer sequences than
// the program has room for. So are positions, where a call may go on with a sequence.
#include "codegen/host/dims.h"

#include "ir/accessors.h"

#include <ctype.h>
#include <string.h>

// A dimension of the source is one constant; a name that a call binds anew gives several.
struct hec_dim_constant {
    MlirStringRef dim;
    int64_t size;
    const char *name;
    bool used;
};

static bool same(MlirStringRef a, const char *b) {
    return mlirStringRefEqual(a, HEC_STR(b));
}

// Names that the compiler makes cannot clash with functions of the C library; a user's lower-case
// name can (exp, y0, read), so it gets a prefix.
static const char *constant_name(struct hec_emitter *e, MlirStringRef dim, int64_t size,
                                 bool again) {
    const bool own = same(dim, "layers") || same(dim, "picks") || same(dim, "first");
    const char *prefix = !own && islower((unsigned char)*dim.data) ? "dim_" : "";
    const char *base = HEC_TEXT(e, "%s%.*s", prefix, (int)dim.length, dim.data);
    if (again) base = HEC_TEXT(e, "%s_%" PRId64, base, size);
    return hec_ident(&e->globals, HEC_STR(base), "dim");
}

static struct hec_dim_constant *constant_of(struct hec_emitter *e, MlirStringRef dim,
                                            int64_t size) {
    bool again = false;
    for (int i = 0; i < e->dims.count; i++) {
        struct hec_dim_constant *known = &e->dims.item[i];
        if (!mlirStringRefEqual(known->dim, dim)) continue;
        if (known->size == size) return known;
        again = true;
    }
    const struct hec_dim_constant made = {
        .dim = dim, .size = size, .name = constant_name(e, dim, size, again)};
    HEC_PUSH(&e->arena, &e->dims, made);
    return &e->dims.item[e->dims.count - 1];
}

static void collect_type(struct hec_emitter *e, MlirType type) {
    if (!mlirTypeIsARankedTensor(type)) return;
    const struct hec_tensor t = hec_tensor_of(type);
    for (int i = 0; i < t.rank; i++) {
        if (!same(t.dim[i], "batch") && !same(t.dim[i], "rows")) {
            constant_of(e, t.dim[i], t.size[i]);
        }
    }
}

void hec_dims_collect(struct hec_emitter *e) {
    HEC_EACH (op, hec_ops_below(e->module)) {
        if (hec_op_is(op, HEC_OP_set) || hec_op_is(op, HEC_OP_param)) {
            constant_of(e, HEC_STR("layers"), hec_any_layers(op));
        }
        if (hec_op_is(op, HEC_OP_param) || hec_op_is(op, HEC_OP_slot)) {
            collect_type(e, hec_any_type(op));
        }
        if (hec_op_is(op, HEC_OP_FOR) && hec_for_of(op).count != HEC_COUNT_AT_RUN_TIME) {
            constant_of(e, HEC_STR("layers"), hec_for_of(op).count);
        }
        for (int k = 0; k < (int)mlirOperationGetNumResults(op); k++) {
            collect_type(e, mlirValueGetType(hec_result(op, k)));
        }
    }
}

static const char *use(struct hec_emitter *e, MlirStringRef dim, int64_t size) {
    if (size > INT32_MAX) return HEC_TEXT(e, "INT64_C(%" PRId64 ")", size); // No enum constant.
    struct hec_dim_constant *constant = constant_of(e, dim, size);
    constant->used = true;
    return constant->name;
}

const char *hec_layers(struct hec_emitter *e, int64_t count) {
    return use(e, HEC_STR("layers"), count);
}

// Rows of one kind of routing: a variable of the function, batch * T * topk; or those of the wave.
static const char *rows_variable(struct hec_emitter *e, int64_t size) {
    struct hec_function *f = e->function;
    if (e->sends_rows) return "m->rows";
    const int64_t tokens = e->batch * e->positions;
    const int64_t picks = tokens > 0 ? size / tokens : 0;
    for (int i = 0; i < e->dims.count; i++) {
        const struct hec_dim_constant *d = &e->dims.item[i];
        if (!same(d->dim, "picks") || d->size != picks) continue;
        bool known = false;
        for (int k = 0; k < f->rows.count; k++) known = known || f->rows.item[k] == picks;
        if (!known) HEC_PUSH(&e->arena, &f->rows, picks);
        f->uses_batch = true;
        return strcmp(d->name, "picks") == 0 ? "rows" : HEC_TEXT(e, "rows_%" PRId64, picks);
    }
    hec_emit_fault(e, e->module, "has %" PRId64 " rows, which is no multiple of the tokens", size);
    return "0";
}

static bool is_positions(const struct hec_emitter *e, const struct hec_tensor *t, int index) {
    return e->continues && t->size[index] == e->positions &&
           mlirStringRefEqual(t->dim[index], e->positions_dim);
}

const char *hec_positions(struct hec_emitter *e) {
    return constant_of(e, e->positions_dim, e->positions)->name;
}

const char *hec_dim(struct hec_emitter *e, const struct hec_tensor *t, int index) {
    if (same(t->dim[index], "batch")) {
        if (e->function) e->function->uses_batch = true;
        return "batch";
    }
    if (e->function && is_positions(e, t, index)) {
        e->function->uses_positions = true;
        return hec_positions(e);
    }
    if (same(t->dim[index], "rows")) return e->function ? rows_variable(e, t->size[index]) : "rows";
    return use(e, t->dim[index], t->size[index]);
}

static bool is_variable(MlirStringRef dim) {
    return same(dim, "batch") || same(dim, "rows");
}

const char *hec_product(struct hec_emitter *e, const struct hec_tensor *t, int from, int to) {
    if (from >= to) return "1";
    double value = 1;
    bool wide = false;
    for (int i = from; i < to; i++) {
        value *= (double)t->size[i];
        wide = wide || is_variable(t->dim[i]) || is_positions(e, t, i);
    }
    // Constants are ints: the first one decides the width of a product of constants.
    const char *text = !wide && to - from > 1 && value > INT32_MAX ? "(int64_t)" : "";
    for (int i = from; i < to; i++) {
        text = HEC_TEXT(e, "%s%s%s", text, i > from ? " * " : "", hec_dim(e, t, i));
    }
    return text;
}

const char *hec_factor(struct hec_emitter *e, const struct hec_tensor *t, int from, int to) {
    const char *text = hec_product(e, t, from, to);
    return to - from > 1 ? HEC_TEXT(e, "(%s)", text) : text;
}

const char *hec_dims_text(struct hec_emitter *e, MlirType type) {
    const struct hec_tensor t = hec_tensor_of(type);
    const char *text = "[";
    for (int i = 0; i < t.rank; i++) {
        const char *name = is_variable(t.dim[i])
                               ? hec_arena_copy(&e->arena, t.dim[i].data, t.dim[i].length)
                               : constant_of(e, t.dim[i], t.size[i])->name;
        text = HEC_TEXT(e, "%s%s%s", text, i ? ", " : "", name);
    }
    return t.rank ? HEC_TEXT(e, "%s]", text) : "[1]";
}

void hec_dims_print(struct hec_emitter *e, struct hec_writer *out) {
    const char *text = "enum { ";
    int count = 0;
    for (int i = 0; i < e->dims.count; i++) {
        const struct hec_dim_constant *d = &e->dims.item[i];
        if (!d->used) continue;
        text = HEC_TEXT(e, "%s%s%s = %" PRId64, text, count++ ? ", " : "", d->name, d->size);
    }
    if (count) hec_line(out, "%s };", text);
}
