// moe.contract, moe.grouped_contract and moe.gathered_contract. The dimensions of a, b and r fall into three groups,
// each in two of the three tensors; the dims that the result lacks are summed. But for the group of experts, a grouped
// GEMM is the same thing.
#include "ir/ops/contract.h"

#include "ir/accessors.h"
#include "ir/ops/rule.h"
#include "ir/target/target.h"

static bool is_dim(const struct hec_tensor *t, int index, const char *name) {
    return index < t->rank && mlirStringRefEqual(t->dim[index], HEC_STR(name));
}

static bool is_joined(const struct hec_tensor *t, const struct hec_tensor *front,
                      const struct hec_tensor *back) {
    if (t->rank != front->rank + back->rank) return false;
    const struct hec_tensor head = hec_slice(t, 0, front->rank);
    const struct hec_tensor tail = hec_slice(t, front->rank, t->rank);
    return hec_same_dims(&head, front) && hec_same_dims(&tail, back);
}

// The dimensions of `t` that `other` has, or those it lacks, in t's order.
static struct hec_tensor dims_shared(const struct hec_tensor *t, const struct hec_tensor *other,
                                     bool shared) {
    struct hec_tensor dims = {.element = t->element};
    for (int i = 0; i < t->rank; i++) {
        if ((hec_tensor_find(other, t->dim[i]) >= 0) != shared) continue;
        hec_tensor_append(&dims, t->dim[i], t->size[i]);
    }
    return dims;
}

// Where nothing is summed, one operand is a vector whose other use was a GEMM with the other
// operand as an n x 1 matrix: NT keeps that view of it.
static bool match(const struct hec_tensor *a, const struct hec_tensor *b,
                  const struct hec_tensor *r, struct hec_contract *c) {
    const struct hec_tensor summed = dims_shared(a, b, true);
    const struct hec_tensor left = dims_shared(a, b, false), right = dims_shared(b, a, false);
    if (!is_joined(r, &left, &right)) return false;
    const bool left_first = is_joined(a, &left, &summed),
               right_last = is_joined(b, &summed, &right);
    if (left_first && right_last && summed.rank > 0) {
        *c = (struct hec_contract){HEC_CONTRACT_NN, .m = left, .n = right, .k = summed};
    } else if (left_first && is_joined(b, &right, &summed)) {
        *c = (struct hec_contract){HEC_CONTRACT_NT, .m = left, .n = summed, .k = right};
    } else if (right_last && is_joined(a, &summed, &left)) {
        *c = (struct hec_contract){HEC_CONTRACT_TN, .m = summed, .n = right, .k = left};
    } else {
        return false;
    }
    return true;
}

// The dimensions of the tokens that `op` gathers rows of.
static struct hec_tensor tokens_of(MlirOperation op) {
    const struct hec_tensor slot = hec_tensor_at(hec_routed_slot(op));
    return hec_slice(&slot, 0, slot.rank > 0 ? slot.rank - 1 : 0);
}

bool hec_is_gathered(MlirOperation op, MlirValue v) {
    const struct hec_tensor t = hec_tensor_at(v), tokens = tokens_of(op);
    const struct hec_tensor lead = hec_slice(&t, 0, t.rank < tokens.rank ? t.rank : tokens.rank);
    return hec_same_dims(&lead, &tokens);
}

struct hec_tensor hec_rows_at(MlirOperation op, MlirValue v) {
    const struct hec_tensor t = hec_tensor_at(v);
    const enum hec_op computes = hec_op_computes(op);
    const bool gathers = computes == HEC_OP_gathered_contract || computes == HEC_OP_gathered_swiglu;
    if (!gathers || !hec_is_gathered(op, v)) return t;
    const struct hec_tensor pair = hec_tensor_at(hec_routed_pair(op));
    const struct hec_tensor rows = hec_with_element(&pair, t.element);
    const struct hec_tensor width = hec_slice(&t, tokens_of(op).rank, t.rank);
    return hec_join(&rows, &width);
}

// a, b and r of `op`: tokens that are gathered as rows.
static void rows_of(MlirOperation op, struct hec_tensor t[3]) {
    t[0] = hec_rows_at(op, hec_product_a(op));
    t[1] = hec_rows_at(op, hec_product_b(op));
    t[2] = hec_tensor_at(hec_product_r(op));
}

// The same without the expert dimension when rows are grouped by expert.
static void operands_of(MlirOperation op, struct hec_tensor t[3]) {
    rows_of(op, t);
    if (hec_op_computes(op) == HEC_OP_contract) return;
    const int experts_in = is_dim(&t[2], 0, "rows") ? 1 : 2;
    if (t[experts_in].rank > 0) t[experts_in] = hec_slice(&t[experts_in], 1, t[experts_in].rank);
}

bool hec_is_product(MlirOperation op) {
    if (mlirOperationIsNull(op)) return false;
    const enum hec_op computes = hec_op_computes(op);
    return computes == HEC_OP_contract || computes == HEC_OP_grouped_contract ||
           computes == HEC_OP_gathered_contract;
}

bool hec_contract_of(MlirOperation op, struct hec_contract *contract) {
    struct hec_tensor t[3];
    operands_of(op, t);
    return match(&t[0], &t[1], &t[2], contract);
}

// Each dimension must be in two of the three tensors, with one size.
static bool check_dims(MlirOperation op, const struct hec_tensor t[3]) {
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < t[i].rank; j++) {
            const MlirStringRef dim = t[i].dim[j];
            int found = 0;
            for (int k = 0; k < 3; k++) {
                const int at = hec_tensor_find(&t[k], dim);
                if (at < 0) continue;
                found++;
                if (t[k].size[at] == t[i].size[j]) continue;
                return hec_ir_error(op, "dimension %.*s has the sizes %" PRId64 " and %" PRId64,
                                    (int)dim.length, dim.data, t[i].size[j], t[k].size[at]);
            }
            if (found == 2) continue;
            return hec_ir_error(op,
                                found == 1
                                    ? "dimension %.*s is in only one of the operands and the result"
                                    : "not yet: dimension %.*s is in both operands and the result",
                                (int)dim.length, dim.data);
        }
    }
    return true;
}

// Where values may be bf16, a GEMM that `rounds` can have all in bf16 but the gradient of a parameter.
static bool is_kept(MlirOperation op, MlirType a, MlirType b, MlirType r,
                    enum hec_contract_form form) {
    return hec_target_of(op)->bf16_values && hec_any_rounds(op) && mlirTypeIsABF16(a) &&
           mlirTypeIsABF16(b) && (form == HEC_CONTRACT_TN ? mlirTypeIsAF32(r) : mlirTypeIsABF16(r));
}

// One type of reals. A GEMM that `rounds` is one of f32, whose operands become bf16 on the way in:
// a parameter is read as the copy that has been rounded already; TN multiplies no parameter.
static bool check_elements(MlirOperation op, enum hec_contract_form form) {
    const bool rounds = hec_any_rounds(op);
    const MlirType real = mlirShapedTypeGetElementType(mlirValueGetType(hec_product_a(op))),
                   right = mlirShapedTypeGetElementType(mlirValueGetType(hec_product_b(op))),
                   result = mlirShapedTypeGetElementType(mlirValueGetType(hec_product_r(op)));
    const MlirType b =
        rounds && form != HEC_CONTRACT_TN ? mlirBF16TypeGet(mlirOperationGetContext(op)) : real;
    const bool known = mlirTypeIsAF32(real) || (mlirTypeIsAF64(real) && !rounds);
    if (known && mlirTypeEqual(result, real) && mlirTypeEqual(right, b)) return true;
    if (is_kept(op, real, right, result, form)) return true;
    return hec_ir_error(op,
                        rounds ? "with rounds a and the result must be of f32, b of %s"
                               : "operands and result must all be of f32, or of f64",
                        form == HEC_CONTRACT_TN ? "f32, too" : "bf16");
}

static bool check_form(MlirOperation op, const struct hec_tensor t[3]) {
    if (!check_dims(op, t)) return false;
    struct hec_contract c;
    if (match(&t[0], &t[1], &t[2], &c)) return check_elements(op, c.form);
    return hec_ir_error(
        op, "not yet: %s by %s to %s needs a transpose", hec_type_text(hec_tensor_type(&t[0])).text,
        hec_type_text(hec_tensor_type(&t[1])).text, hec_type_text(hec_tensor_type(&t[2])).text);
}

// The batch, whose size is known at run time only, must be the outermost dimension of M.
static bool verify_contract(MlirOperation op) {
    struct hec_tensor t[3];
    operands_of(op, t);
    if (!check_form(op, t)) return false;
    struct hec_contract c;
    hec_contract_of(op, &c);
    if (hec_tensor_find(&c.n, HEC_STR("batch")) < 0 &&
        hec_tensor_find(&c.k, HEC_STR("batch")) < 0 &&
        hec_tensor_find(&c.m, HEC_STR("batch")) <= 0) {
        return true;
    }
    return hec_ir_error(op, "not yet: batch may only be the first dimension of the rows");
}

// `rows` is the M of the GEMM; which tensor has the experts follows from that.
static bool verify_grouped(MlirOperation op) {
    struct hec_tensor t[3];
    rows_of(op, t);
    const struct hec_tensor a = t[0], b = t[1], r = t[2];
    const bool to_experts = is_dim(&b, 0, "rows");
    if (!is_dim(&a, 0, "rows") || to_experts == is_dim(&r, 0, "rows"))
        return hec_ir_error(
            op, "a and one of b and r must start with rows, the other with the experts");
    const struct hec_tensor *by_expert = to_experts ? &r : &b;
    if (!hec_expect_rank(op, to_experts ? "r" : "b", by_expert, 1)) return false;
    const struct hec_tensor first =
        hec_vector(hec_i32(op), HEC_STR("first"), by_expert->size[0] + 1);
    if (!hec_expect(op, "first", hec_by_expert_first(op), &first)) return false;
    if (hec_tensor_find(&a, by_expert->dim[0]) >= 0 ||
        hec_tensor_find(to_experts ? &b : &r, by_expert->dim[0]) >= 0)
        return hec_ir_error(op, "the expert dimension %.*s may be in one tensor only",
                            (int)by_expert->dim[0].length, by_expert->dim[0].data);
    operands_of(op, t);
    return check_form(op, t);
}

static bool verify_gathered(MlirOperation op) {
    struct hec_tensor pair, slot;
    if (!hec_check_route(op, &pair, &slot)) return false;
    if (hec_is_gathered(op, hec_product_a(op)) == hec_is_gathered(op, hec_product_b(op)))
        return hec_ir_error(op, "one of a and b must be of the route's tokens, the other not");
    return verify_grouped(op);
}

static struct hec_cost cost(MlirOperation op) {
    struct hec_contract c;
    struct hec_cost cost = {.bytes = hec_io_bytes(op)};
    if (!hec_contract_of(op, &c)) return cost;
    cost.flops = 2;
    for (int i = 0; i < c.m.rank; i++) cost.flops *= (double)c.m.size[i];
    for (int i = 0; i < c.n.rank; i++) cost.flops *= (double)c.n.size[i];
    for (int i = 0; i < c.k.rank; i++) cost.flops *= (double)c.k.size[i];
    return cost;
}

// Adds the GEMM of `p` and `q` to the gradient of `v`. The left operand is the one that has v's
// first dimension (after the experts'), so that no GEMM needs a transpose.
static void add_product(struct hec_gradient *g, MlirOperation op, MlirValue v, MlirValue p,
                        MlirValue q) {
    const MlirType type = hec_type_unrounded(mlirValueGetType(v));
    const bool grouped = hec_op_is(op, HEC_OP_grouped_contract);
    const struct hec_tensor t = hec_tensor_of(type), right = hec_tensor_of(mlirValueGetType(q));
    const int lead = grouped && !is_dim(&t, 0, "rows") ? 1 : 0;
    const bool swap = lead < t.rank && hec_tensor_find(&right, t.dim[lead]) >= 0;
    MlirValue in[3] = {swap ? q : p, swap ? p : q};
    if (grouped) in[2] = g->primal(g, hec_grouped_contract_first(op));
    const enum hec_op id = grouped ? HEC_OP_grouped_contract : HEC_OP_contract;
    const bool rounds = hec_any_rounds(op); // Then all three GEMMs do.
    const MlirNamedAttribute attribute = hec_attr_bool(g->builder->context, "rounds", true);
    g->add(g, v,
           hec_build_value(g->builder, id, grouped ? 3 : 2, in, type, rounds ? 1 : 0, &attribute));
}

static void gradient(struct hec_gradient *g, MlirOperation op) {
    const MlirValue a = hec_product_a(op), b = hec_product_b(op);
    const MlirValue dr = g->of(g, hec_product_r(op), true);
    if (g->wants(g, a)) add_product(g, op, a, dr, g->primal(g, b));
    if (g->wants(g, b)) add_product(g, op, b, g->primal(g, a), dr);
}

static void gradient_gathered(struct hec_gradient *g, MlirOperation op) {
    (void)g;
    hec_ir_error(op, "has no gradient; gather-rows must run behind differentiate");
}

const struct hec_traits hec_traits_contract = {
    .pure = true, .adds = 1, .verify = verify_contract, .gradient = gradient, .cost = cost};

const struct hec_traits hec_traits_grouped_contract = {
    .pure = true, .adds = 1, .verify = verify_grouped, .gradient = gradient, .cost = cost};

const struct hec_traits hec_traits_gathered_contract = {.pure = true,
                                                        .adds = 1,
                                                        .verify = verify_gathered,
                                                        .gradient = gradient_gathered,
                                                        .cost = cost};
