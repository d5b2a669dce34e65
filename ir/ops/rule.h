// Shared by the operation families in this folder: expected types, gradient rules, costs.
#ifndef HECATE_IR_OPS_RULE_H
#define HECATE_IR_OPS_RULE_H

#include "ir/core/gradient.h"

// ---- types

// The parts of the value's type. Values kept as bf16 count as f32: rules know the computed numbers, ir/values.c how
// it is kept.
struct hec_tensor hec_tensor_at(MlirValue value);

// Dimensions [from, to) of `t`, and those of `t` followed by those of `more`; t's element type.
struct hec_tensor hec_slice(const struct hec_tensor *t, int from, int to);
struct hec_tensor hec_join(const struct hec_tensor *t, const struct hec_tensor *more);
struct hec_tensor hec_with_element(const struct hec_tensor *t, MlirType element);
struct hec_tensor hec_scalar(MlirType element);
struct hec_tensor hec_vector(MlirType element, MlirStringRef dim, int64_t size);
// Same dimensions with the same sizes in the same order.
bool hec_same_dims(const struct hec_tensor *a, const struct hec_tensor *b);
MlirType hec_i32(MlirOperation op);

// A type as text, cut when it is very long.
struct hec_type_text {
    char text[256];
};
struct hec_type_text hec_type_text(MlirType type);

// ---- checks: each reports a fault at `op` and returns false

bool hec_expect(MlirOperation op, const char *what, MlirValue value, const struct hec_tensor *want);
bool hec_expect_real(MlirOperation op, const char *what, MlirValue value);
bool hec_expect_rank(MlirOperation op, const char *what, const struct hec_tensor *t, int least);
// An integer attribute of at least `least`.
bool hec_expect_int(MlirOperation op, const char *key, int64_t least);
// `size` is the dimension that token ids index: at least hecate.vocabulary, where the module says it.
bool hec_expect_ids(MlirOperation op, const char *what, int64_t size);

// The attribute group, where there is one: at least one sequence.
bool hec_check_group(MlirOperation op);

// The attributes capacity, drop and group, of moe.limit, fssdp.drop and moe.experts.
bool hec_check_capacity(MlirOperation op);

// The operands pair [rows] and slot [tokens.., picks] of an operation that moves rows by a route (family routed); gives
// their types.
bool hec_check_route(MlirOperation op, struct hec_tensor *pair, struct hec_tensor *slot);

// ---- gradient rules

// Builds an operation of one result, whose type its row infers.
MlirValue hec_rule_build(struct hec_gradient *g, enum hec_op id, int operands,
                         const MlirValue *operand);
// Adds `d` to the gradient of `v`, summed over the dimensions along which `v` was broadcast. Does
// nothing when `v` has no gradient.
void hec_rule_add(struct hec_gradient *g, MlirValue v, MlirValue d);
// Copies the attributes `key` of `op`; `key` ends with NULL. Returns how many.
int hec_rule_attributes(MlirOperation op, const char *const *key, MlirNamedAttribute *attribute);

// ---- costs

double hec_io_bytes(MlirOperation op); // Bytes of all tensor operands and results.
// `flops` per element of the first operand, or of the first result when that is larger.
struct hec_cost hec_cost_per_element(MlirOperation op, double flops);

#endif
