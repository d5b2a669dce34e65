// Shared parts of the operation families.
#include "ir/ops/rule.h"

#include "ir/accessors.h"

#include <assert.h>
#include <string.h>

struct hec_tensor hec_tensor_at(MlirValue value) {
    return hec_tensor_of(hec_type_unrounded(mlirValueGetType(value)));
}

struct hec_tensor hec_slice(const struct hec_tensor *t, int from, int to) {
    struct hec_tensor part = {.element = t->element};
    for (int i = from; i < to; i++) hec_tensor_append(&part, t->dim[i], t->size[i]);
    return part;
}

struct hec_tensor hec_join(const struct hec_tensor *t, const struct hec_tensor *more) {
    struct hec_tensor both = *t;
    for (int i = 0; i < more->rank; i++) hec_tensor_append(&both, more->dim[i], more->size[i]);
    return both;
}

struct hec_tensor hec_with_element(const struct hec_tensor *t, MlirType element) {
    struct hec_tensor other = *t;
    other.element = element;
    return other;
}

struct hec_tensor hec_scalar(MlirType element) {
    return (struct hec_tensor){.element = element};
}

struct hec_tensor hec_vector(MlirType element, MlirStringRef dim, int64_t size) {
    struct hec_tensor t = {.element = element};
    hec_tensor_append(&t, dim, size);
    return t;
}

bool hec_same_dims(const struct hec_tensor *a, const struct hec_tensor *b) {
    if (a->rank != b->rank) return false;
    for (int i = 0; i < a->rank; i++) {
        if (a->size[i] != b->size[i] || !mlirStringRefEqual(a->dim[i], b->dim[i])) return false;
    }
    return true;
}

MlirType hec_i32(MlirOperation op) {
    return mlirIntegerTypeGet(mlirOperationGetContext(op), 32);
}

struct text_end {
    struct hec_type_text *to;
    size_t length;
};

static void append(MlirStringRef text, void *user) {
    struct text_end *end = user;
    const size_t room = sizeof end->to->text - 1 - end->length;
    const size_t length = text.length < room ? text.length : room;
    memcpy(end->to->text + end->length, text.data, length);
    end->length += length;
}

struct hec_type_text hec_type_text(MlirType type) {
    struct hec_type_text text = {{0}};
    struct text_end end = {&text, 0};
    mlirTypePrint(type, append, &end);
    return text;
}

bool hec_expect(MlirOperation op, const char *what, MlirValue value,
                const struct hec_tensor *want) {
    const MlirType type = hec_tensor_type(want);
    if (mlirTypeEqual(hec_type_unrounded(mlirValueGetType(value)), type)) return true;
    return hec_ir_error(op, "%s is %s, expected %s", what,
                        hec_type_text(mlirValueGetType(value)).text, hec_type_text(type).text);
}

bool hec_expect_real(MlirOperation op, const char *what, MlirValue value) {
    if (hec_type_is_real(hec_type_unrounded(mlirValueGetType(value)))) return true;
    return hec_ir_error(op, "%s is %s, expected a tensor of f32 or f64", what,
                        hec_type_text(mlirValueGetType(value)).text);
}

bool hec_expect_rank(MlirOperation op, const char *what, const struct hec_tensor *t, int least) {
    if (t->rank >= least) return true;
    return hec_ir_error(op, "%s is %s, expected at least %d dimensions", what,
                        hec_type_text(hec_tensor_type(t)).text, least);
}

bool hec_expect_int(MlirOperation op, const char *key, int64_t least) {
    const int64_t value = hec_get_int(op, key);
    if (value >= least) return true;
    return hec_ir_error(op, "%s is %" PRId64 ", expected at least %" PRId64, key, value, least);
}

bool hec_expect_ids(MlirOperation op, const char *what, int64_t size) {
    const MlirOperation module = hec_module_of(op);
    if (!hec_module_has_vocabulary(module)) return true;
    const int64_t vocabulary = hec_module_vocabulary(module);
    if (size >= vocabulary) return true;
    return hec_ir_error(op, "%s takes token ids up to %" PRId64 ", they go up to %" PRId64, what,
                        size - 1, vocabulary - 1);
}

MlirValue hec_rule_build(struct hec_gradient *g, enum hec_op id, int operands,
                         const MlirValue *operand) {
    const MlirOperation op = hec_build_inferred(g->builder, id, operands, operand, 0, NULL);
    assert(!mlirOperationIsNull(op));
    return hec_result(op, 0);
}

// Summed in two steps when dimensions go on both sides of those that stay: kernels sum rows or
// columns.
void hec_rule_add(struct hec_gradient *g, MlirValue v, MlirValue d) {
    if (!g->wants(g, v)) return;
    const MlirType type = mlirValueGetType(v);
    if (mlirTypeEqual(type, mlirValueGetType(d))) {
        g->add(g, v, d);
        return;
    }
    const struct hec_tensor want = hec_tensor_of(type), have = hec_tensor_of(mlirValueGetType(d));
    if (want.rank > 0) {
        const int first = hec_tensor_find(&have, want.dim[0]);
        const int last = hec_tensor_find(&have, want.dim[want.rank - 1]);
        if (first > 0 && last < have.rank - 1) {
            const struct hec_tensor front = hec_slice(&have, 0, last + 1);
            d = hec_build_value(g->builder, HEC_OP_sum, 1, &d, hec_tensor_type(&front), 0, NULL);
        }
    }
    g->add(g, v, hec_build_value(g->builder, HEC_OP_sum, 1, &d, type, 0, NULL));
}

int hec_rule_attributes(MlirOperation op, const char *const *key, MlirNamedAttribute *attribute) {
    int count = 0;
    for (; *key; key++) {
        const MlirAttribute own = mlirOperationGetAttributeByName(op, HEC_STR(*key));
        if (mlirAttributeIsNull(own)) continue;
        attribute[count++] = hec_attr(mlirOperationGetContext(op), *key, own);
    }
    return count;
}

double hec_io_bytes(MlirOperation op) {
    double bytes = 0;
    for (int i = 0; i < mlirOperationGetNumOperands(op); i++) {
        bytes += (double)hec_type_bytes(mlirValueGetType(hec_operand(op, i)));
    }
    for (int i = 0; i < mlirOperationGetNumResults(op); i++) {
        bytes += (double)hec_type_bytes(mlirValueGetType(hec_result(op, i)));
    }
    return bytes;
}

struct hec_cost hec_cost_per_element(MlirOperation op, double flops) {
    int64_t elements = 0;
    if (mlirOperationGetNumOperands(op) > 0) {
        elements = hec_type_elements(mlirValueGetType(hec_operand(op, 0)));
    }
    if (mlirOperationGetNumResults(op) > 0) {
        const int64_t made = hec_type_elements(mlirValueGetType(hec_result(op, 0)));
        if (made > elements) elements = made;
    }
    return (struct hec_cost){.flops = flops * (double)elements, .bytes = hec_io_bytes(op)};
}
