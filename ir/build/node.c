// Operations: one node of the program becomes one operation, or a few. Types come from the op table;
// the checker has made sure that they fit.
//
// In the body of an expert, rows of all experts are computed together: parameters have the experts
// first, GEMMs are grouped, and values broadcast along the rows are spread to them.
#include "ir/build/node.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ir/build/sums.h"
#include "ir/build/value.h"
#include "lang/builtins.h"

// ---- elementwise

// A vector per expert becomes one per row: "b1_rows" of "b1".
static MlirValue spread(struct hec_scope *scope, MlirValue v) {
    const struct hec_tensor t = hec_tensor_of(mlirValueGetType(v));
    const struct hec_shape row = {.rank = 1, .dim = {{"T", scope->build->program->positions}}};
    struct hec_tensor r = hec_tensor_of(hec_build_type(scope, &row, true, false));
    for (int i = 1; i < t.rank; i++) hec_tensor_append(&r, t.dim[i], t.size[i]);

    const MlirStringRef own = hec_value_name(v);
    char name[128];
    snprintf(name, sizeof name, "%.*s_rows", (int)own.length, own.data);
    struct hec_builder b = scope->b;
    b.at = hec_loc_named(own.length ? name : NULL, hec_loc_strip(b.at));
    const MlirValue in[] = {v, scope->first};
    return hec_build_value(&b, HEC_OP_spread, 2, in, hec_tensor_type(&r), 0, NULL);
}

// Beside rows of experts, vectors of experts become rows, too.
static void spread_vectors(struct hec_scope *scope, int operands, const MlirValue *operand,
                           MlirValue *in) {
    bool by_rows = false;
    for (int i = 0; i < operands; i++) by_rows |= hec_build_has_rows(operand[i]);
    for (int i = 0; i < operands; i++) {
        const bool apart = by_rows && hec_build_is_by_expert(scope, operand[i]);
        in[i] = apart ? spread(scope, operand[i]) : operand[i];
    }
}

static MlirValue elementwise(struct hec_scope *scope, enum hec_op op, int operands,
                             const MlirValue *operand) {
    MlirValue in[HEC_OPERANDS_MAX];
    spread_vectors(scope, operands, operand, in);
    return hec_build_one(scope, op, operands, in, 0, NULL);
}

static MlirValue build_elementwise(struct hec_scope *scope, const struct hec_node *node,
                                   enum hec_op op, const MlirValue *operand) {
    return elementwise(scope, op, node->operands, operand);
}

// ---- parts

// The type of the node's value; where it is of parameters of experts alone, it starts with the experts.
static MlirType part_type(const struct hec_scope *scope, const struct hec_node *node,
                          const MlirValue *operand) {
    const MlirType type = hec_build_type(scope, &node->shape, node->batched, false);
    bool by_expert = false;
    for (int i = 0; i < node->operands; i++) by_expert |= hec_build_is_by_expert(scope, operand[i]);
    if (node->batched || !by_expert) return type;
    const struct hec_tensor own = hec_tensor_of(type);
    const struct hec_dim experts = scope->expert_of->experts;
    struct hec_tensor t = {.element = own.element};
    hec_tensor_append(&t, HEC_STR(experts.name), experts.size);
    for (int i = 0; i < own.rank; i++) hec_tensor_append(&t, own.dim[i], own.size[i]);
    return hec_tensor_type(&t);
}

static MlirValue build_slice(struct hec_scope *scope, const struct hec_node *node, enum hec_op op,
                             const MlirValue *operand) {
    const MlirNamedAttribute begin =
        hec_attr_int(scope->build->context, "begin", node->attribute.begin);
    return hec_build_of_type(scope, op, 1, operand, part_type(scope, node, operand), 1, &begin);
}

static MlirValue build_concat(struct hec_scope *scope, const struct hec_node *node, enum hec_op op,
                              const MlirValue *operand) {
    MlirValue in[HEC_OPERANDS_MAX];
    spread_vectors(scope, node->operands, operand, in);
    return hec_build_of_type(scope, op, node->operands, in, part_type(scope, node, in), 0, NULL);
}

static MlirValue build_transpose(struct hec_scope *scope, const struct hec_node *node,
                                 enum hec_op op, const MlirValue *operand) {
    return hec_build_of_type(scope, op, 1, operand, part_type(scope, node, operand), 0, NULL);
}

// ---- norms, attention

// Gain and bias of an expert cannot be operands of the norm: every row has another.
static MlirValue build_norm(struct hec_scope *scope, const struct hec_node *node, enum hec_op op,
                            const MlirValue *operand) {
    const MlirContext c = scope->build->context;
    const bool apart = node->operands > 1 && hec_build_is_by_expert(scope, operand[1]);
    const MlirNamedAttribute attribute[] = {
        hec_attr_float(c, "eps", node->attribute.eps),
        hec_attr_int(c, "over", node->attribute.over),
    };
    MlirValue y = hec_build_one(scope, op, apart ? 1 : node->operands, operand, 2, attribute);
    for (int i = 1; apart && i < node->operands && !scope->build->failed; i++) {
        const MlirValue in[] = {y, operand[i]};
        y = elementwise(scope, i == 1 ? HEC_OP_mul : HEC_OP_add, 2, in);
    }
    return y;
}

// x times factors that training steps draw.
static MlirValue build_dropout(struct hec_scope *scope, const struct hec_node *node, enum hec_op op,
                               const MlirValue *operand) {
    const MlirContext c = scope->build->context;
    const MlirNamedAttribute attribute[] = {
        hec_attr_float(c, "rate", node->attribute.rate),
        hec_attr_int(c, "number", node->attribute.number),
    };
    struct hec_builder b = scope->b;
    b.at = hec_loc_named("kept", hec_loc_strip(b.at));
    const MlirValue factors[] = {
        operand[0],
        hec_build_value(&b, op, mlirValueIsNull(scope->layer) ? 0 : 1, &scope->layer,
                        mlirValueGetType(operand[0]), 2, attribute),
    };
    return hec_build_one(scope, HEC_OP_mul, 2, factors, 0, NULL);
}

static MlirValue build_sum(struct hec_scope *scope, const struct hec_node *node, enum hec_op op,
                           const MlirValue *operand) {
    struct hec_tensor all = hec_tensor_of(mlirValueGetType(operand[0]));
    struct hec_tensor r = {.element = all.element};
    for (int i = 0; i < all.rank; i++) { // The compiler's own dims stay: batch, rows, experts.
        bool summed = false;
        for (int k = 0; k < node->operand[0]->shape.rank; k++) {
            const struct hec_dim *dim = &node->operand[0]->shape.dim[k];
            bool kept = false;
            for (int j = 0; j < node->shape.rank; j++) kept |= node->shape.dim[j].name == dim->name;
            summed |= !kept && mlirStringRefEqual(all.dim[i], HEC_STR(dim->name));
        }
        if (!summed) hec_tensor_append(&r, all.dim[i], all.size[i]);
    }
    return hec_build_value(&scope->b, op, 1, operand, hec_tensor_type(&r), 0, NULL);
}

static MlirValue build_softmax(struct hec_scope *scope, const struct hec_node *node, enum hec_op op,
                               const MlirValue *operand) {
    const MlirNamedAttribute over =
        hec_attr_int(scope->build->context, "over", node->attribute.over);
    return hec_build_one(scope, op, 1, operand, 1, &over);
}

static MlirValue build_rope(struct hec_scope *scope, const struct hec_node *node, enum hec_op op,
                            const MlirValue *operand) {
    const MlirNamedAttribute pairs = hec_attr_bool(scope->build->context, "interleaved", true);
    return hec_build_one(scope, op, node->operands, operand, node->attribute.interleaved, &pairs);
}

static MlirValue build_sdpa(struct hec_scope *scope, const struct hec_node *node, enum hec_op op,
                            const MlirValue *operand) {
    const MlirContext c = scope->build->context;
    const struct hec_tensor q = hec_tensor_of(mlirValueGetType(operand[0]));
    const double given = node->attribute.scale;
    const double scale = given != 0 ? given : 1 / sqrt((double)q.size[q.rank - 1]);
    const double cap = node->attribute.cap;
    const int64_t chunk = node->attribute.chunk;
    const bool documents = node->attribute.documents;
    const int32_t has[] = {1, 1, 1, node->operands - documents > 3, documents};
    int count = 4;
    MlirNamedAttribute attribute[6] = {
        hec_attr_operands(c, 5, has),
        hec_attr_bool(c, "causal", node->attribute.causal),
        hec_attr_int(c, "window", node->attribute.window),
        hec_attr_float(c, "scale", scale),
    };
    if (chunk) attribute[count++] = hec_attr_int(c, "chunk", chunk);
    if (cap != 0) attribute[count++] = hec_attr_float(c, "cap", cap);
    return hec_build_one(scope, op, node->operands, operand, count, attribute);
}

static MlirValue build_causal_conv(struct hec_scope *scope, const struct hec_node *node,
                                   enum hec_op op, const MlirValue *operand) {
    return hec_build_one(scope, op, node->operands, operand, 0, NULL);
}

static MlirValue build_delta_rule(struct hec_scope *scope, const struct hec_node *node,
                                  enum hec_op op, const MlirValue *operand) {
    const struct hec_tensor q = hec_tensor_of(mlirValueGetType(operand[0]));
    const double given = node->attribute.scale;
    const double scale = given != 0 ? given : 1 / sqrt((double)q.size[q.rank - 1]);
    const MlirNamedAttribute attribute[] = {
        hec_attr_float(scope->build->context, "scale", scale),
        hec_attr_int(scope->build->context, "chunk", HEC_DELTA_CHUNK),
    };
    return hec_build_one(scope, op, node->operands, operand, 2, attribute);
}

static MlirValue build_documents(struct hec_scope *scope, const struct hec_node *node,
                                 enum hec_op op, const MlirValue *operand) {
    const MlirNamedAttribute end = hec_attr_int(scope->build->context, "end", node->attribute.end);
    return hec_build_one(scope, op, 1, operand, 1, &end);
}

// ---- operators that are not elementwise

static MlirValue build_contract(struct hec_scope *scope, const struct hec_node *node,
                                enum hec_op op, const MlirValue *operand) {
    (void)node, (void)op; // Grouped, where rows of several experts meet.
    return hec_build_contract(scope, operand[0], operand[1]);
}

static MlirValue build_gather(struct hec_scope *scope, const struct hec_node *node, enum hec_op op,
                              const MlirValue *operand) {
    return hec_build_one(scope, op, node->operands, operand, 0, NULL);
}

// The targets themselves are one position ahead.
static MlirValue build_ahead(struct hec_scope *scope, const struct hec_node *node, enum hec_op op,
                             const MlirValue *operand) {
    (void)operand;
    const MlirNamedAttribute by = hec_attr_int(scope->build->context, "by", node->ahead - 1);
    const MlirValue targets = scope->build->targets;
    return node->ahead == 1 ? targets : hec_build_one(scope, op, 1, &targets, 1, &by);
}

// The checker takes cross_entropy and distill for what a loss is, which is no node.
static MlirValue build_loss(struct hec_scope *scope, const struct hec_node *node, enum hec_op op,
                            const MlirValue *operand) {
    (void)scope, (void)node, (void)op, (void)operand;
    assert(false);
    return (MlirValue){0};
}

// ---- nodes

typedef MlirValue build_fn(struct hec_scope *scope, const struct hec_node *node, enum hec_op op,
                           const MlirValue *operand);

static MlirValue builtin(struct hec_scope *scope, const struct hec_node *node,
                         const MlirValue *operand) {
    static const struct {
        enum hec_op op;
        build_fn *build;
    } table[HEC_BUILTIN_COUNT] = {
#define HEC_OPERATOR(id, rule, text) [HEC_BUILTIN_##id] = {HEC_OP_##id, build_##rule},
#define HEC_FUNCTION(id, rule, call, text) [HEC_BUILTIN_##id] = {HEC_OP_##id, build_##rule},
#define HEC_COMPOSED(id, rule, call, text)
#include "lang/builtins.def"
    };
    return table[node->builtin].build(scope, node, table[node->builtin].op, operand);
}

static MlirValue call(struct hec_scope *scope, const struct hec_node *node,
                      const MlirValue *operand) {
    assert(!scope->expert_of || node->callee->kind != HEC_UNIT_MOE); // The checker refuses it.
    const struct hec_called called =
        scope->build->call(scope, node->callee, node->operands, operand);
    if (scope->build->failed) return called.value;
    hec_build_at(scope, node->at, NULL);
    hec_build_sum(scope, &scope->sums, &called.sums);
    return called.value;
}

// "attention_in" for the gain attention_norm, after its owner; "normed" for other gains.
static void norm_name(const struct hec_param *gain, char *text, size_t room) {
    static const char suffix[] = "_norm";
    const size_t length = strlen(gain->name), end = sizeof suffix - 1;
    if (length > end && strcmp(gain->name + length - end, suffix) == 0) {
        snprintf(text, room, "%.*s_in", (int)(length - end), gain->name);
    } else {
        snprintf(text, room, "normed");
    }
}

// Names of values reach the emitted program. One that the user did not name is called after what it
// is: the model's result, the unit it comes from, the input of the unit that it is normalised for, or
// the factors of a product ("x_wq").
static void build_at_node(struct hec_scope *scope, const struct hec_node *node,
                          const MlirValue *operand) {
    char text[128] = "";
    const struct hec_program *program = scope->build->program;
    for (int i = 0; i < program->losses; i++) {
        if (node == program->loss[i].logits)
            snprintf(text, sizeof text, "%s_logits", program->loss[i].name);
    }
    if (node == program->model->result) {
        snprintf(text, sizeof text, "logits");
    } else if (text[0]) {
        hec_build_at(scope, node->at, node->name ? node->name : text);
        return;
    } else if (node->kind == HEC_NODE_CALL) {
        snprintf(text, sizeof text, "%s", node->callee->name);
    } else if (node->kind == HEC_NODE_BUILTIN && node->builtin == HEC_BUILTIN_contract) {
        const MlirStringRef a = hec_value_name(operand[0]), b = hec_value_name(operand[1]);
        if (a.length && b.length && a.length + b.length < sizeof text / 4) {
            snprintf(text, sizeof text, "%.*s_%.*s", (int)a.length, a.data, (int)b.length, b.data);
        }
    }
    if (node->kind == HEC_NODE_BUILTIN && node->builtin == HEC_BUILTIN_transpose) {
        const MlirStringRef own = hec_value_name(operand[0]);
        if (own.length && own.length < sizeof text / 2)
            snprintf(text, sizeof text, "%.*s_turned", (int)own.length, own.data);
    }
    const bool is_norm = node->kind == HEC_NODE_BUILTIN && hec_builtin_takes(node->builtin, "over");
    const struct hec_node *gain = is_norm && node->operands > 1 ? node->operand[1] : NULL;
    if (gain && gain->kind == HEC_NODE_BUILTIN) gain = gain->operand[0]; // One is added to it.
    if (gain && gain->kind == HEC_NODE_PARAM) norm_name(gain->param, text, sizeof text);
    hec_build_at(scope, node->at, node->name ? node->name : text[0] ? text : NULL);
}

void hec_build_node(struct hec_scope *scope, const struct hec_node *node) {
    struct hec_build *build = scope->build;
    MlirValue operand[HEC_OPERANDS_MAX], v = {0};
    for (int i = 0; i < node->operands; i++) {
        operand[i] = hec_build_value_of(scope, node->operand[i]);
    }
    build_at_node(scope, node, operand);
    switch (node->kind) {
    case HEC_NODE_ARGUMENT:
        return; // The function or the loop has made it.
    case HEC_NODE_PARAM:
        v = hec_build_get(scope, node->param);
        break;
    case HEC_NODE_NUMBER: {
        const MlirType type = hec_build_type(scope, &node->shape, false, false);
        v = hec_build_fill(&scope->b, type, node->number);
        break;
    }
    case HEC_NODE_BUILTIN:
        v = builtin(scope, node, operand);
        break;
    case HEC_NODE_CALL:
        v = call(scope, node, operand);
        break;
    case HEC_NODE_CARRIED: {
        const MlirOperation loop = {(void *)hec_map_get(&build->loop, node->loop)};
        assert(!mlirOperationIsNull(loop));
        v = hec_result(loop, node->index);
        break;
    }
    }
    *hec_map_at(&build->value, node) = (intptr_t)v.ptr;
}
