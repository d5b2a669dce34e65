// Symbols of the module: sets, parameters, slots that the runtime reads.
#include "ir/build/symbols.h"

#include "ir/accessors.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_MAX = 512 };

static struct hec_builder top_builder(struct hec_build *build, struct hec_span at,
                                      const char *name) {
    return hec_builder_end(hec_module_body(build->module), hec_build_location(build, at, name));
}

// init and the numbers that it needs. Returns how many attributes.
static int init_attributes(MlirContext c, const struct hec_param *param,
                           MlirNamedAttribute *attribute) {
    static const char *const words[] = {[HEC_INIT_ZEROS] = "zeros",
                                        [HEC_INIT_ONES] = "ones",
                                        [HEC_INIT_NORMAL] = "normal",
                                        [HEC_INIT_ROPE] = "rope"};
    int count = 0;
    attribute[count++] = hec_attr_string(c, "init", words[param->init]);
    if (param->init == HEC_INIT_NORMAL)
        attribute[count++] = hec_attr_float(c, "deviation", param->init_value);
    if (param->init != HEC_INIT_ROPE) return count;
    const struct hec_rope *rope = &param->rope;
    attribute[count++] = hec_attr_float(c, "theta", param->init_value);
    if (rope->factor == 0) return count; // They are not scaled.
    attribute[count++] = hec_attr_float(c, "factor", rope->factor);
    attribute[count++] = hec_attr_float(c, "low", rope->low);
    attribute[count++] = hec_attr_float(c, "high", rope->high);
    attribute[count++] = hec_attr_float(c, "amplitude", rope->amplitude);
    if (rope->original > 0) attribute[count++] = hec_attr_float(c, "original", rope->original);
    return count;
}

// Two numbers of each layer: the factor of the learning rate, and the decay.
// A decay of -1 is none, 0 is the optimizer's.
static MlirNamedAttribute rates_attribute(MlirContext c, const struct hec_param *param) {
    double *number = hec_checked(calloc((size_t)param->layers * 2, sizeof *number));
    for (int64_t i = 0; i < param->layers; i++) {
        const struct hec_rates *rates = &param->layer_rates[i];
        number[2 * i] = rates->lr_scale != 0 ? rates->lr_scale : 1;
        number[2 * i + 1] = rates->decay ? rates->decay_rate : -1;
    }
    const MlirAttribute all = mlirDenseF64ArrayGet(c, param->layers * 2, number);
    free(number);
    return hec_attr(c, "layer_rates", all);
}

static void build_param(struct hec_build *build, const struct hec_param *param) {
    enum { FIXED = 6, MOST = 23 };
    const MlirContext c = build->context;
    const struct hec_scope top = {.build = build};
    char *symbol = hec_build_symbol(build, param->symbol);
    MlirNamedAttribute attribute[MOST] = {
        hec_attr_string(c, "sym_name", symbol),
        hec_attr_type(c, "type", hec_build_type(&top, &param->shape, false, false)),
        hec_attr_int(c, "layers", param->layers),
        hec_attr_string(c, "path", param->path),
        hec_attr_bool(c, "decay", param->rates.decay),
        hec_attr_bool(c, "trainable", param->trainable),
    };
    int count = FIXED + init_attributes(c, param, attribute + FIXED);
    if (param->frozen && !param->balances) attribute[count++] = hec_attr_bool(c, "frozen", true);
    if (param->lora)
        attribute[count++] = hec_attr_string(c, "lora", param->lora == HEC_LORA_A ? "a" : "b");
    if (param->shares) attribute[count++] = hec_attr_string(c, "shares", param->shares->path);
    if (param->role) attribute[count++] = hec_attr_string(c, "role", hec_role_text(param->role));
    if (param->muon) attribute[count++] = hec_attr_bool(c, "muon", true);
    if (param->layer_rates) {
        attribute[count++] = rates_attribute(c, param);
    } else {
        const struct hec_rates *rates = &param->rates;
        if (rates->lr_scale != 0)
            attribute[count++] = hec_attr_float(c, "lr_scale", rates->lr_scale);
        if (rates->decay_rate != 0)
            attribute[count++] = hec_attr_float(c, "decay_rate", rates->decay_rate);
    }
    if (param->layers > 0) {
        attribute[count++] = hec_attr_int(c, "index_first", param->index_first);
        attribute[count++] = hec_attr_int(c, "index_stride", param->index_stride);
    }
    if (param->expert_of) {
        const MlirOperation set = {(void *)hec_map_get(&build->symbol, param->expert_of)};
        assert(!mlirOperationIsNull(set));
        attribute[count++] = hec_attr_symbol(c, "set", hec_set_sym_name(set));
    }
    struct hec_builder b = top_builder(build, param->at, param->name);
    const MlirOperation op = hec_build_op(&b, HEC_OP_param, 0, NULL, 0, NULL, count, attribute);
    *hec_map_at(&build->symbol, param) = (intptr_t)op.ptr;
    free(symbol);
}

static void build_set(struct hec_build *build, const struct hec_moe *moe) {
    const MlirContext c = build->context;
    char *symbol = hec_build_symbol(build, moe->symbol);
    const MlirNamedAttribute attribute[] = {
        hec_attr_string(c, "sym_name", symbol),
        hec_attr_int(c, "experts", moe->experts.size),
        hec_attr_int(c, "topk", moe->topk),
        hec_attr_int(c, "layers", moe->layers),
    };
    struct hec_builder b = top_builder(build, moe->at, NULL);
    const MlirOperation op = hec_build_op(&b, HEC_OP_set, 0, NULL, 0, NULL, 4, attribute);
    *hec_map_at(&build->symbol, moe) = (intptr_t)op.ptr;
    free(symbol);
}

// Parameters are built after the sets that theirs belong to; a set's selection bias is named then.
static void link_select_bias(struct hec_build *build, const struct hec_moe *moe) {
    if (!moe->select_bias || moe->select_bias->frozen || moe->bias_rate == 0) return;
    const MlirOperation set = {(void *)hec_map_get(&build->symbol, moe)};
    const MlirOperation bias = {(void *)hec_map_get(&build->symbol, moe->select_bias)};
    hec_set_put_bias_rate(set, moe->bias_rate);
    hec_set_put_select_bias(set, hec_any_sym_name(bias));
}

// A slot that the runtime reads. It holds "loads", those of `set`, or other values: then `set` is null.
static MlirOperation build_slot(struct hec_build *build, const char *symbol, MlirType type,
                                int64_t layers, const char *holds, MlirOperation set,
                                struct hec_span at) {
    const MlirContext c = build->context;
    const MlirNamedAttribute attribute[] = {
        hec_attr_string(c, "sym_name", symbol), hec_attr_type(c, "type", type),
        hec_attr_int(c, "layers", layers),      hec_attr_bool(c, "observed", true),
        hec_attr_string(c, "holds", holds),
    };
    struct hec_builder b = top_builder(build, at, NULL);
    const MlirOperation slot = hec_build_op(&b, HEC_OP_slot, 0, NULL, 0, NULL, 5, attribute);
    if (set.ptr) hec_slot_put_set(slot, hec_set_sym_name(set));
    return slot;
}

// Counts of tokens per expert, in every layer: the runtime reads them.
static void build_loads(struct hec_build *build, const struct hec_moe *moe) {
    const MlirOperation set = {(void *)hec_map_get(&build->symbol, moe)};
    const MlirStringRef name = hec_set_sym_name(set);
    char symbol[TEXT_MAX];
    snprintf(symbol, sizeof symbol, "%.*s.loads", (int)name.length, name.data);
    struct hec_tensor loads = {.element = build->i32};
    hec_tensor_append(&loads, HEC_STR(moe->experts.name), moe->experts.size);
    const MlirOperation slot =
        build_slot(build, symbol, hec_tensor_type(&loads), moe->layers, "loads", set, moe->at);
    *hec_map_at(&build->loads, moe) = (intptr_t)slot.ptr;
}

// The logits of a named loss; for one against a teacher the losses of tokens, which no logits give alone.
static void build_loss_slot(struct hec_build *build, const struct hec_named_loss *loss) {
    const struct hec_scope top = {.build = build};
    const bool soft = loss->temperature > 0;
    struct hec_shape shape = loss->logits->shape;
    char text[TEXT_MAX];
    snprintf(text, sizeof text, "%s.%s", loss->name, soft ? "losses" : "logits");
    char *symbol = hec_build_symbol(build, text);
    if (soft) shape.rank = 1;
    const MlirOperation slot =
        build_slot(build, symbol, hec_build_type(&top, &shape, true, false), 0,
                   soft ? "losses" : "loss", (MlirOperation){0}, loss->logits->at);
    hec_slot_put_loss(slot, loss->name);
    hec_slot_put_ahead(slot, loss->ahead);
    hec_slot_put_coef(slot, loss->weight);
    *hec_map_at(&build->symbol, loss) = (intptr_t)slot.ptr;
    free(symbol);
}

void hec_build_symbols(struct hec_build *build) {
    const struct hec_program *program = build->program;
    for (int i = 0; i < program->moes; i++) build_set(build, program->moe[i]);
    for (int i = 0; i < program->params; i++) build_param(build, program->param[i]);
    for (int i = 0; i < program->moes; i++) link_select_bias(build, program->moe[i]);
    for (int i = 0; i < program->moes; i++) build_loads(build, program->moe[i]);
    const struct hec_node *logits = program->model->result;
    const struct hec_scope top = {.build = build};
    build_slot(build, "logits", hec_build_type(&top, &logits->shape, true, false), 0, "logits",
               (MlirOperation){0}, logits->at);
    for (int i = 0; i < program->losses; i++) build_loss_slot(build, &program->loss[i]);
}
