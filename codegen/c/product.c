// Products: which of the three matrix products a contraction is, told by dimension names.
#include "codegen/c/ops.h"

// A product of matrices [P, S] and [S, Q], each group of dimensions side by side. In which order a
// and b have their groups says which kernel computes it.
struct product {
    struct hec_tensor a, b, r; // Without the expert dimension.
    int rows, columns, summed; // Dimensions in P, Q, S.
    bool a_turned;             // a is [S, P].
    bool b_turned;             // b is [Q, S].
};

static bool has(const struct hec_tensor *t, MlirStringRef dim) {
    return hec_tensor_find(t, dim) >= 0;
}

// Whether dimensions `from`.. of t are the `count` dimensions `other_from`.. of `other`.
static bool matches(const struct hec_tensor *t, int from, const struct hec_tensor *other,
                    int other_from, int count) {
    if (from + count > t->rank || other_from + count > other->rank) return false;
    for (int i = 0; i < count; i++) {
        if (!mlirStringRefEqual(t->dim[from + i], other->dim[other_from + i])) return false;
    }
    return true;
}

static bool analyse(struct product *p) {
    const struct hec_tensor *a = &p->a, *b = &p->b, *r = &p->r;
    p->rows = p->columns = p->summed = 0;
    for (int i = 0; i < a->rank; i++) {
        if (has(r, a->dim[i]) == has(b, a->dim[i])) return false;
        if (has(r, a->dim[i]))
            p->rows++;
        else
            p->summed++;
    }
    for (int i = 0; i < b->rank; i++) p->columns += has(r, b->dim[i]);
    if (p->columns + p->summed != b->rank || p->rows + p->columns != r->rank) return false;
    if (!matches(r, 0, a, 0, p->rows)) {
        p->a_turned = true;
        if (!matches(r, 0, a, p->summed, p->rows)) return false;
    }
    if (!matches(r, p->rows, b, p->summed, p->columns)) {
        p->b_turned = true;
        if (!matches(r, p->rows, b, 0, p->columns)) return false;
    }
    // Nothing is summed: b is [Q, 1] as well as [1, Q]. Layouts take it for the first.
    if (p->summed == 0) p->b_turned = true;
    // Without columns, b has one order only, and the other one of a may be the same, too.
    const int a_summed = p->a_turned ? 0 : p->rows, b_summed = p->b_turned ? p->columns : 0;
    return matches(a, a_summed, b, b_summed, p->summed);
}

// How many rows and columns the result has, and how many terms each of its sums.
static const char *rows_of(struct hec_emitter *e, const struct product *p) {
    return hec_product(e, &p->r, 0, p->rows);
}

static const char *columns_of(struct hec_emitter *e, const struct product *p) {
    return hec_product(e, &p->r, p->rows, p->rows + p->columns);
}

static const char *terms_of(struct hec_emitter *e, const struct product *p) {
    const int summed = p->a_turned ? 0 : p->rows;
    return hec_product(e, &p->a, summed, summed + p->summed);
}

const char *hec_kernel_suffix(struct hec_emitter *e, MlirOperation op) {
    return hec_get_bool(op, "rounds") ? "bf16" : e->suffix;
}

void hec_emit_contract(struct hec_emitter *e, MlirOperation op) {
    MlirValue a = hec_operand(op, 0), b = hec_operand(op, 1);
    const MlirValue r = hec_result(op, 0);
    struct product p = {.a = hec_tensor_of(mlirValueGetType(a)),
                        .b = hec_tensor_of(mlirValueGetType(b)),
                        .r = hec_tensor_of(mlirValueGetType(r))};
    if (!analyse(&p) || (p.a_turned && p.b_turned)) {
        // a @ b is b @ a: what comes first in the result decides which is the left one.
        const MlirValue left = b;
        b = a, a = left;
        p = (struct product){.a = p.b, .b = p.a, .r = p.r};
        if (!analyse(&p) || (p.a_turned && p.b_turned)) {
            hec_emit_fault(e, op, "needs a transpose, which this target cannot do yet");
            return;
        }
    }
    const char *rows = rows_of(e, &p), *columns = columns_of(e, &p), *terms = terms_of(e, &p);
    const char *c = hec_ref(e, r), *left = hec_ref(e, a), *right = hec_ref(e, b);
    const char *mode = hec_write_mode(e, op, 0), *f = hec_kernel_suffix(e, op);
    const char *epilogue = hec_epilogue(e, op, p.rows);
    if (p.a_turned) { // r [P, Q] = a^T b: the kernel's B = A^T C.
        hec_statement(e,
                      "hk_matmul_tn_%s(%s, %s, %s, %s, "
                      "(struct hk_matmul_dims){.m = %s, .n = %s, .k = %s}, %s);",
                      f, c, left, right, hec_layout(e, r), terms, columns, rows, mode);
    } else if (p.b_turned) { // r [P, Q] = a b^T: the kernel's A = C B^T.
        hec_statement(e,
                      "hk_matmul_nt_%s(%s, %s, %s, %s, "
                      "(struct hk_matmul_dims){.m = %s, .n = %s, .k = %s}, %s, %s);",
                      f, c, left, right, hec_layout(e, b), rows, terms, columns, mode, epilogue);
    } else {
        hec_statement(e,
                      "hk_matmul_nn_%s(%s, %s, %s, %s, "
                      "(struct hk_matmul_dims){.m = %s, .n = %s, .k = %s}, %s, %s);",
                      f, c, left, right, hec_layout(e, b), rows, columns, terms, mode, epilogue);
    }
}

// ---- rows of experts

// Takes the expert dimension, the first one, off a tensor.
static const char *without_experts(struct hec_emitter *e, struct hec_tensor *t) {
    const char *experts = hec_dim(e, t, 0);
    for (int i = 1; i < t->rank; i++) t->dim[i - 1] = t->dim[i], t->size[i - 1] = t->size[i];
    t->rank--;
    return experts;
}

void hec_emit_grouped_contract(struct hec_emitter *e, MlirOperation op) {
    const MlirValue a = hec_operand(op, 0), b = hec_operand(op, 1), r = hec_result(op, 0);
    const MlirStringRef rows = HEC_STR("rows");
    struct product p = {.a = hec_tensor_of(mlirValueGetType(a)),
                        .b = hec_tensor_of(mlirValueGetType(b)),
                        .r = hec_tensor_of(mlirValueGetType(r))};
    const bool outer = !has(&p.r, rows); // The gradient of the weights.
    const char *experts = "0";
    if (has(&p.a, rows) && p.b.rank > 0 && p.r.rank > 0) {
        experts = without_experts(e, outer ? &p.r : &p.b);
    }
    if (!analyse(&p) || p.a_turned != outer || (outer && p.b_turned)) {
        hec_emit_fault(e, op, "is no product of rows with the matrices of experts");
        return;
    }
    const char *f = hec_kernel_suffix(e, op), *first = hec_ref(e, hec_operand(op, 2));
    const char *mode = hec_write_mode(e, op, 0), *left = hec_ref(e, a);
    const char *epilogue = hec_epilogue(e, op, p.rows);
    if (outer) {
        hec_statement(e,
                      "hk_grouped_tn_%s(%s, %s, %s, %s, %s, "
                      "(struct hk_grouped_dims){.experts = %s, .n = %s, .k = %s}, %s);",
                      f, hec_chunk(e, r), hec_chunk_offset(e, r), left, hec_ref(e, b), first,
                      experts, columns_of(e, &p), rows_of(e, &p), mode);
        return;
    }
    const char *columns = columns_of(e, &p), *terms = terms_of(e, &p);
    const char *n = p.b_turned ? terms : columns, *k = p.b_turned ? columns : terms;
    hec_statement(e,
                  "hk_grouped_%s_%s(%s, %s, %s, %s, %s, "
                  "(struct hk_grouped_dims){.experts = %s, .n = %s, .k = %s}, %s, %s);",
                  p.b_turned ? "nt" : "nn", f, hec_ref(e, r), left, hec_chunk(e, b),
                  hec_chunk_offset(e, b), first, experts, n, k, mode, epilogue);
}

void hec_emit_spread(struct hec_emitter *e, MlirOperation op) {
    const MlirValue a = hec_operand(op, 0);
    const struct hec_tensor t = hec_tensor_of(mlirValueGetType(a));
    hec_statement(e, "hk_spread_%s(%s, %s, %s, %s, %s, %s, %s);", e->suffix,
                  hec_ref(e, hec_result(op, 0)), hec_chunk(e, a), hec_chunk_offset(e, a),
                  hec_ref(e, hec_operand(op, 1)), hec_dim(e, &t, 0), hec_product(e, &t, 1, t.rank),
                  hec_write_mode(e, op, 0));
}

void hec_emit_spread_grad(struct hec_emitter *e, MlirOperation op) {
    const MlirValue da = hec_result(op, 0);
    const struct hec_tensor t = hec_tensor_of(mlirValueGetType(da));
    hec_statement(e, "hk_spread_grad_%s(%s, %s, %s, %s, %s, %s, %s);", e->suffix, hec_chunk(e, da),
                  hec_chunk_offset(e, da), hec_ref(e, hec_operand(op, 0)),
                  hec_ref(e, hec_operand(op, 1)), hec_dim(e, &t, 0), hec_product(e, &t, 1, t.rank),
                  hec_write_mode(e, op, 0));
}
