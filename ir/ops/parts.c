// Parts of a tensor along one dimension, which have another dimension in its place: slice, its gradient, concat.
#include "ir/ops/parts.h"

#include "ir/accessors.h"
#include "ir/ops/rule.h"

// The one dimension of `t` that `other` lacks; -1: there is none, or several.
static int own_dim(const struct hec_tensor *t, const struct hec_tensor *other) {
    int found = -1;
    for (int i = 0; i < t->rank; i++) {
        if (hec_tensor_find(other, t->dim[i]) >= 0) continue;
        if (found >= 0) return -1;
        found = i;
    }
    return found;
}

// Whether the dimensions of `t` are among those of `space`, of the same sizes and in their order.
static bool is_within(const struct hec_tensor *t, const struct hec_tensor *space) {
    int previous = -1;
    for (int i = 0; i < t->rank; i++) {
        const int at = hec_tensor_find(space, t->dim[i]);
        if (at <= previous || space->size[at] != t->size[i]) return false;
        previous = at;
    }
    return true;
}

static bool misfit(MlirOperation op, const struct hec_tensor *whole,
                   const struct hec_tensor *part) {
    return hec_ir_error(op, "%s is no part of %s along one dimension",
                        hec_type_text(hec_tensor_type(part)).text,
                        hec_type_text(hec_tensor_type(whole)).text);
}

// Adds a part that begins at `begin`. A part that is broadcast lacks other dimensions of the whole.
static bool add_part(MlirOperation op, struct hec_parts *parts, MlirValue value, int64_t begin,
                     bool broadcast) {
    if (!hec_expect_real(op, "a part", value)) return false;
    const struct hec_tensor whole = hec_tensor_at(parts->whole), part = hec_tensor_at(value);
    struct hec_part *to = &parts->part[parts->count++];
    const int own = own_dim(&part, &whole);
    *to = (struct hec_part){.value = value, .begin = begin, .space = whole};
    if (own < 0 || !mlirTypeEqual(part.element, whole.element)) return misfit(op, &whole, &part);
    to->space.dim[parts->at] = part.dim[own];
    to->space.size[parts->at] = part.size[own];
    if (!is_within(&part, &to->space) || (!broadcast && part.rank != whole.rank))
        return misfit(op, &whole, &part);
    if (begin >= 0 && begin + part.size[own] <= whole.size[parts->at]) return true;
    return hec_ir_error(
        op, "elements %" PRId64 " to %" PRId64 " are not in a dimension of size %" PRId64, begin,
        begin + part.size[own] - 1, whole.size[parts->at]);
}

static bool part_of(MlirOperation op, MlirValue whole, MlirValue part, struct hec_parts *parts) {
    const struct hec_tensor t = hec_tensor_at(whole), p = hec_tensor_at(part);
    *parts = (struct hec_parts){.whole = whole, .at = own_dim(&t, &p)};
    if (!hec_expect_real(op, "the whole", whole)) return false;
    if (parts->at < 0) return misfit(op, &t, &p);
    return add_part(op, parts, part, hec_any_begin(op), false);
}

// The dimension that neither part has is made of one of each.
static bool parts_of_concat(MlirOperation op, struct hec_parts *parts) {
    const MlirValue a = hec_concat_a(op), b = hec_concat_b(op);
    *parts = (struct hec_parts){.whole = hec_concat_r(op), .at = -1};
    if (!hec_expect_real(op, "the result", parts->whole)) return false;
    const struct hec_tensor whole = hec_tensor_at(parts->whole);
    const struct hec_tensor part[] = {hec_tensor_at(a), hec_tensor_at(b)};
    for (int i = 0; i < whole.rank; i++) {
        if (hec_tensor_find(&part[0], whole.dim[i]) >= 0 ||
            hec_tensor_find(&part[1], whole.dim[i]) >= 0)
            continue;
        if (parts->at >= 0) return misfit(op, &whole, &part[0]);
        parts->at = i;
    }
    if (parts->at < 0) return misfit(op, &whole, &part[0]);
    if (!add_part(op, parts, a, 0, true)) return false;
    const int64_t middle = parts->part[0].space.size[parts->at];
    if (!add_part(op, parts, b, middle, true)) return false;
    const int64_t sum = middle + parts->part[1].space.size[parts->at];
    if (sum == whole.size[parts->at]) return true;
    return hec_ir_error(op, "the parts have %" PRId64 " elements together, the result %" PRId64,
                        sum, whole.size[parts->at]);
}

bool hec_parts_of(MlirOperation op, struct hec_parts *parts) {
    switch (hec_op_of(op)) {
    case HEC_OP_slice:
        return part_of(op, hec_slice_a(op), hec_slice_r(op), parts);
    case HEC_OP_slice_grad:
        return part_of(op, hec_slice_grad_da(op), hec_slice_grad_dr(op), parts);
    default:
        return parts_of_concat(op, parts);
    }
}

static bool verify(MlirOperation op) {
    struct hec_parts parts;
    return hec_parts_of(op, &parts);
}

// The rest of the whole gets nothing from this slice.
static void gradient_slice(struct hec_gradient *g, MlirOperation op) {
    const MlirValue a = hec_slice_a(op), dr = g->of(g, hec_slice_r(op), true);
    const MlirNamedAttribute begin = hec_attr_int(g->builder->context, "begin", hec_any_begin(op));
    g->add(g, a,
           hec_build_value(g->builder, HEC_OP_slice_grad, 1, &dr, mlirValueGetType(a), 1, &begin));
}

// Each part gets its slice, summed over the dimensions along which it was broadcast.
static void gradient_concat(struct hec_gradient *g, MlirOperation op) {
    struct hec_parts parts;
    if (!hec_parts_of(op, &parts)) return;
    const MlirValue dr = g->of(g, parts.whole, true);
    for (int i = 0; i < parts.count; i++) {
        const struct hec_part *part = &parts.part[i];
        if (!g->wants(g, part->value)) continue;
        const MlirNamedAttribute begin = hec_attr_int(g->builder->context, "begin", part->begin);
        const MlirValue d = hec_build_value(g->builder, HEC_OP_slice, 1, &dr,
                                            hec_tensor_type(&part->space), 1, &begin);
        hec_rule_add(g, part->value, d);
    }
}

const struct hec_traits hec_traits_slice = {
    .pure = true, .cheap = true, .verify = verify, .gradient = gradient_slice};

const struct hec_traits hec_traits_slice_grad = {.pure = true, .verify = verify};

const struct hec_traits hec_traits_concat = {
    .pure = true, .cheap = true, .verify = verify, .gradient = gradient_concat};
