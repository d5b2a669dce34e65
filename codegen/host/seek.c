// seek: where in a sequence the next forward begins. Pointers to what is kept from call to call, keys and values,
// and to parameters with a row for each position move to the row of that position; code that reads them is
// unchanged.
#include "codegen/host/seek.h"

#include "codegen/host/dims.h"
#include "codegen/host/symbols.h"
#include "ir/accessors.h"

// Elements of a position: all dimensions behind it.
static const char *row_of(struct hec_emitter *e, const struct hec_tensor *t, int position) {
    return t->rank > position + 1 ? HEC_TEXT(e, " * %s", hec_product(e, t, position + 1, t->rank))
                                  : "";
}

// Whether the parameter has a row for each position, as cache-keys has checked what reads it.
static bool has_positions(const struct hec_emitter *e, MlirOperation param,
                          const struct hec_tensor *t) {
    return !hec_any_has_set(param) && t->rank > 0 && t->size[0] == e->positions &&
           mlirStringRefEqual(t->dim[0], e->positions_dim);
}

static void move(struct hec_emitter *e, struct hec_writer *out, const char *part, MlirOperation op,
                 const char *row) {
    const int64_t layers = hec_any_layers(op);
    const int64_t rows =
        hec_op_is(op, HEC_OP_slot) && hec_any_has_rows(op) ? hec_any_rows(op) : layers;
    const char *name = hec_member(e, op);
    if (!layers) {
        hec_line(out, "m->%s.%s += (first - m->first)%s;", part, name, row);
        return;
    }
    hec_line(out, "for (int64_t i = 0; i < %s%s; i++) m->%s.%s[i] += (first - m->first)%s;",
             hec_layers(e, layers), rows > layers ? " + 1" : "", part, name, row);
}

void hec_model_seek(struct hec_emitter *e, struct hec_writer *out) {
    if (!e->continues) return;
    hec_blank(out);
    hec_comment(out,
                "The next forward computes `count` positions of one sequence, from `first` on.");
    hec_open(out, "static void seek(void *model, int64_t first, int64_t count) {");
    hec_line(out, "struct %s *m = model;", e->name);
    HEC_EACH (op, hec_ops_in(hec_module_body(e->module))) {
        const bool param = hec_op_is(op, HEC_OP_param);
        if (!param && !hec_op_is(op, HEC_OP_slot)) continue;
        const struct hec_tensor t = hec_tensor_of(hec_any_type(op));
        if (param && has_positions(e, op, &t)) move(e, out, "param", op, row_of(e, &t, 0));
        if (!param && hec_any_kept(op)) move(e, out, "saved", op, row_of(e, &t, 1));
    }
    hec_line(out, "m->first = first;");
    hec_line(out, "m->positions = count;");
    hec_close(out, "}");
}
