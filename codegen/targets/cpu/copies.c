// Sums and movement inside the arena: sum, copy, transpose, parts of tensors, accumulate.
#include "codegen/host/gradient.h"
#include "codegen/host/part.h"
#include "codegen/targets/cpu/loops.h"
#include "codegen/targets/cpu/ops.h"
#include "ir/accessors.h"

// A sum that is neither over the leading nor over the trailing dimensions: loops over what is
// kept, around a loop over what is summed, in ascending order. (For the others there are kernels.)
void hec_emit_sum(struct hec_emitter *e, MlirOperation op) {
    const MlirValue a = hec_sum_a(op), r = hec_sum_r(op);
    const MlirType type[] = {mlirValueGetType(a), mlirValueGetType(r)};
    const struct hec_tensor ta = hec_tensor_of(type[0]), tr = hec_tensor_of(type[1]);
    struct hec_tensor order = tr; // The kept dims, then the summed ones.
    for (int i = 0; i < ta.rank; i++) {
        if (hec_tensor_find(&tr, ta.dim[i]) < 0) hec_tensor_append(&order, ta.dim[i], ta.size[i]);
    }
    const struct hec_loops loops = hec_loops_of(order, 2, type);
    const struct hec_nest *nest = &loops.nest;
    struct hec_writer *body = &e->function->body;
    const char *from = hec_element(e, a, hec_nest_index(e, nest, type[0]));
    const char *to = hec_element(e, r, hec_nest_index(e, nest, type[1]));
    int kept = 0;
    while (kept < nest->loops && nest->first[kept] < tr.rank) kept++;
    hec_loops_heads(e, &loops, 0, kept);
    hec_statement(e, "%s sum = 0;", e->real);
    hec_loops_heads(e, &loops, kept, nest->loops);
    hec_statement(e, "sum += %s;", from);
    for (int i = kept; i < nest->loops; i++) hec_close(body, "}");
    hec_statement(e, "%s %s sum;", to, hec_home_adds(r) ? "+=" : "=");
    for (int i = 0; i < kept; i++) hec_close(body, "}");
}

void hec_emit_copy(struct hec_emitter *e, MlirOperation op) {
    const MlirValue a = hec_copy_a(op), r = hec_copy_r(op);
    hec_loops_copy(e, hec_ref(e, r), hec_ref(e, a), mlirValueGetType(r), hec_home_adds(r));
}

void hec_emit_transpose(struct hec_emitter *e, MlirOperation op) {
    const MlirValue a = hec_transpose_a(op), r = hec_transpose_r(op);
    const MlirType type[] = {mlirValueGetType(a), mlirValueGetType(r)};
    const struct hec_loops loops = hec_loops_of(hec_tensor_of(type[1]), 2, type);
    const char *from = hec_element(e, a, hec_nest_index(e, &loops.nest, type[0]));
    const char *to = hec_element(e, r, hec_nest_index(e, &loops.nest, type[1]));
    hec_loops_statement(e, &loops,
                        HEC_TEXT(e, "%s %s %s;", to, hec_home_adds(r) ? "+=" : "=", from));
}

// One element of part `index`, between the whole and where the part lies.
static void move_part(struct hec_emitter *e, const struct hec_parts *parts, int index, bool back) {
    const MlirValue value = parts->part[index].value;
    const struct hec_loops loops = hec_loops_of_nest(hec_part_nest(parts, index));
    const char *part =
        hec_element(e, value, hec_nest_index(e, &loops.nest, mlirValueGetType(value)));
    const char *whole = hec_element(e, parts->whole, hec_part_index(e, &loops.nest, parts, index));
    hec_loops_statement(e, &loops,
                        HEC_TEXT(e, "%s = %s;", back ? whole : part, back ? part : whole));
}

void hec_emit_slice(struct hec_emitter *e, MlirOperation op) {
    struct hec_parts parts;
    if (hec_parts_of(op, &parts)) move_part(e, &parts, 0, false);
}

void hec_emit_slice_grad(struct hec_emitter *e, MlirOperation op) {
    struct hec_parts parts;
    if (!hec_parts_of(op, &parts)) return;
    const struct hec_loops loops = hec_loops_of_nest(hec_whole_nest(&parts));
    const char *index = hec_nest_index(e, &loops.nest, mlirValueGetType(parts.whole));
    hec_loops_statement(e, &loops, HEC_TEXT(e, "%s = 0;", hec_element(e, parts.whole, index)));
    move_part(e, &parts, 0, true);
}

void hec_emit_concat(struct hec_emitter *e, MlirOperation op) {
    struct hec_parts parts;
    if (!hec_parts_of(op, &parts)) return;
    for (int i = 0; i < parts.count; i++) move_part(e, &parts, i, true);
}

void hec_emit_accumulate(struct hec_emitter *e, MlirOperation op) {
    const struct hec_home target = hec_gradient_home(op);
    const MlirValue value = hec_accumulate_value(op);
    if (hec_in_set(hec_home_symbol(e, &target))) {
        hec_emit_fault(e, op, "adds a tensor to gradients that lie in chunks");
        return;
    }
    hec_loops_copy(e, hec_home_ref(e, &target), hec_ref(e, value), mlirValueGetType(value), true);
}
