// The module: its attributes, and @forward with the loss.
#include "ir/build/build.h"

#include <stdlib.h>
#include <string.h>

#include "ir/accessors.h"
#include "ir/build/body.h"
#include "ir/build/sums.h"
#include "ir/build/symbols.h"
#include "ir/build/unit.h"
#include "ir/build/value.h"
#include "ir/core/setting.h"

_Static_assert((int)HEC_LOSSES_MAX == (int)HEC_IR_NAMED_LOSSES_MAX,
               "checked programs can be built");
_Static_assert((int)HEC_EXPERTS_MAX == (int)HEC_IR_EXPERTS_MAX, "checked programs can be built");

// ---- @forward

// The loss of all layers together, from their mean scores and fractions, whose sums are known now. Added to
// those of single layers.
static void build_joint_loss(struct hec_scope *scope) {
    const struct hec_moe *moe = NULL;
    const double layers = (double)hec_build_joint(scope->build->program, &moe);
    if (!moe || mlirValueIsNull(scope->sums.of[HEC_SUM_MEANS])) return;
    const MlirNamedAttribute coef =
        hec_attr_float(scope->build->context, "coef", moe->aux / (layers * layers));
    const MlirValue in[] = {scope->sums.of[HEC_SUM_MEANS], scope->sums.of[HEC_SUM_FRACTIONS]};
    hec_build_at(scope, moe->at, "auxiliary");
    const struct hec_sums joint = {
        .of = {[HEC_SUM_AUXILIARY] = hec_build_one(scope, HEC_OP_aux_loss, 2, in, 1, &coef)}};
    if (!scope->build->failed) hec_build_sum(scope, &scope->sums, &joint);
}

// The cross-entropy of logits, which the runtime reads in the slot.
static MlirValue build_cross_entropy(struct hec_scope *scope, struct hec_span at, const char *name,
                                     MlirStringRef slot, MlirValue logits, MlirValue targets,
                                     MlirValue scale) {
    hec_build_at(scope, at, NULL);
    const MlirNamedAttribute symbol = hec_attr_symbol(scope->build->context, "slot", slot);
    hec_build_op(&scope->b, HEC_OP_stash, 1, &logits, 0, NULL, 1, &symbol);
    hec_build_at(scope, at, name);
    const MlirValue in[] = {logits, targets, scale};
    return hec_build_one(scope, HEC_OP_cross_entropy, 3, in, 0, NULL);
}

// A setting of the objective, as an attribute of its name.
static MlirNamedAttribute of_objective(struct hec_scope *scope, const char *name,
                                       enum hec_key key) {
    const char *text = hec_program_text(scope->build->program, key);
    return hec_attr_float(scope->build->context, name, strtod(text, NULL));
}

// The model's own loss, by its objective: of targets, of pairs of sequences, or of a rollout's advantages.
static MlirValue build_own(struct hec_scope *scope, struct hec_span at, MlirValue logits,
                           MlirValue scale) {
    const char *objective = hec_program_text(scope->build->program, HEC_KEY_train_objective);
    const bool dpo = strcmp(objective, "dpo") == 0;
    const MlirStringRef slot = HEC_STR("logits");
    if (!dpo && strcmp(objective, "policy") != 0)
        return build_cross_entropy(scope, at, "cross_entropy", slot, logits, scope->build->targets,
                                   scale);
    const MlirNamedAttribute symbol = hec_attr_symbol(scope->build->context, "slot", slot);
    const MlirNamedAttribute beta = of_objective(scope, "beta", HEC_KEY_train_objective_beta);
    const MlirNamedAttribute ratio[] = {of_objective(scope, "clip", HEC_KEY_train_objective_clip),
                                        of_objective(scope, "kl", HEC_KEY_train_objective_kl)};
    hec_build_at(scope, at, NULL);
    hec_build_op(&scope->b, HEC_OP_stash, 1, &logits, 0, NULL, 1, &symbol);
    hec_build_at(scope, at, objective);
    const MlirValue in[] = {logits, scope->build->targets, scale};
    return dpo ? hec_build_one(scope, HEC_OP_dpo, 3, in, 1, &beta)
               : hec_build_one(scope, HEC_OP_policy, 3, in, 2, ratio);
}

// `factor` times a number; `factor` 1: the number itself.
static MlirValue build_times(struct hec_scope *scope, double factor, MlirValue number) {
    const MlirValue in[] = {number, hec_build_fill(&scope->b, mlirValueGetType(number), factor)};
    return factor == 1 ? number : hec_build_one(scope, HEC_OP_mul, 2, in, 0, NULL);
}

static MlirValue build_sum(struct hec_scope *scope, struct hec_span at, MlirValue a, MlirValue b) {
    const MlirValue in[] = {a, b};
    hec_build_at(scope, at, "loss");
    return hec_build_one(scope, HEC_OP_add, 2, in, 0, NULL);
}

// The cross-entropy of logits with teacher entries. The runtime reads what the tokens lose in the slot.
static MlirValue build_distill(struct hec_scope *scope, const struct hec_named_loss *loss,
                               MlirStringRef slot, MlirValue scale) {
    const MlirContext c = scope->build->context;
    const MlirNamedAttribute temperature = hec_attr_float(c, "temperature", loss->temperature);
    const MlirNamedAttribute symbol = hec_attr_symbol(c, "slot", slot);
    const MlirValue in[] = {hec_build_value_of(scope, loss->logits), scale};
    hec_build_at(scope, loss->at, loss->name);
    const MlirValue result = hec_build_one(scope, HEC_OP_distill, 2, in, 1, &temperature);
    if (scope->build->failed) return result;
    const MlirValue losses = hec_distill_losses(hec_defining(result));
    hec_build_at(scope, loss->at, NULL);
    hec_build_op(&scope->b, HEC_OP_stash, 1, &losses, 0, NULL, 1, &symbol);
    return result;
}

// A loss that has a name: the mean over the positions that predict a token, `scale` being for all of them.
static MlirValue build_named_loss(struct hec_scope *scope, const struct hec_named_loss *loss,
                                  MlirValue scale) {
    struct hec_build *build = scope->build;
    const double positions = (double)build->program->positions;
    const MlirOperation slot = {(void *)hec_map_get(&build->symbol, loss)};
    if (loss->temperature > 0) return build_distill(scope, loss, hec_slot_sym_name(slot), scale);
    const MlirValue targets =
        loss->targets ? hec_build_value_of(scope, loss->targets) : build->targets;
    hec_build_at(scope, loss->at, NULL);
    return build_cross_entropy(
        scope, loss->at, loss->name, hec_slot_sym_name(slot),
        hec_build_value_of(scope, loss->logits), targets,
        build_times(scope, positions / (positions - (double)(loss->ahead - 1)), scale));
}

// The model's own cross-entropy, by its weight in the objective.
static MlirValue build_own_share(struct hec_scope *scope, MlirValue cross_entropy) {
    const char *text = hec_program_text(scope->build->program, HEC_KEY_train_objective_weight);
    const double weight = text ? strtod(text, NULL) : 1;
    if (weight == 1) return cross_entropy;
    if (weight == 0) return hec_build_fill(&scope->b, mlirValueGetType(cross_entropy), 0);
    return build_times(scope, weight, cross_entropy);
}

// loss = weight * cross_entropy + auxiliary_scale * auxiliary + weight * each loss that has a name, and its parts.
static void build_losses(struct hec_scope *scope, MlirValue scale, MlirValue auxiliary_scale) {
    struct hec_build *build = scope->build;
    const struct hec_program *program = build->program;
    const struct hec_span at = program->model->result->at;
    const MlirValue logits = hec_build_value_of(scope, program->model->result);
    MlirValue result[HEC_LOSSES + HEC_LOSSES_MAX];
    result[1] = build_own(scope, at, logits, scale);
    if (build->failed) return;
    build_joint_loss(scope);
    const MlirValue auxiliary = scope->sums.of[HEC_SUM_AUXILIARY];
    hec_build_at(scope, at, "loss");
    result[0] = build_own_share(scope, result[1]), result[2] = auxiliary;
    if (mlirValueIsNull(auxiliary)) {
        hec_build_at(scope, at, "auxiliary");
        result[2] = hec_build_fill(&scope->b, mlirValueGetType(scale), 0);
    } else {
        hec_build_at(scope, at, NULL);
        const MlirValue scaled[] = {auxiliary_scale, auxiliary};
        result[0] =
            build_sum(scope, at, result[0], hec_build_one(scope, HEC_OP_mul, 2, scaled, 0, NULL));
    }
    for (int i = 0; i < program->losses && !build->failed; i++) {
        const struct hec_named_loss *loss = &program->loss[i];
        result[HEC_LOSSES + i] = build_named_loss(scope, loss, scale);
        hec_build_at(scope, loss->at, NULL);
        result[0] = build_sum(scope, loss->at, result[0],
                              build_times(scope, loss->weight, result[HEC_LOSSES + i]));
    }
    if (build->failed) return;
    hec_build_at(scope, at, NULL);
    hec_build_return(&scope->b, scope->func, HEC_LOSSES + program->losses, result);
}

static void build_forward(struct hec_build *build) {
    const struct hec_unit *model = build->program->model;
    const struct hec_node *ids = model->argument[0];
    struct hec_scope scope = {.build = build};
    const MlirType tokens = hec_build_type(&scope, &ids->shape, true, true);
    const struct hec_shape scalar = {0};
    const MlirType real = hec_build_type(&scope, &scalar, false, false);
    const MlirType type[] = {tokens, tokens, real, real};
    const MlirLocation at[] = {
        hec_build_location(build, ids->at, ids->name),
        hec_build_location(build, ids->at, "targets"),
        hec_build_location(build, model->at, "scale"),
        hec_build_location(build, model->at, "auxiliary_scale"),
    };
    const MlirLocation location = hec_build_location(build, model->at, NULL);
    MlirBlock entry;
    scope.func = hec_build_func(hec_module_body(build->module), (MlirOperation){0}, "forward", 4,
                                type, at, location, &entry);
    scope.b = hec_builder_end(entry, location);
    MlirValue argument[4];
    for (int i = 0; i < 4; i++) argument[i] = mlirBlockGetArgument(entry, i);
    *hec_map_at(&build->value, ids) = (intptr_t)argument[0].ptr;
    build->targets = argument[1];
    hec_build_body(&scope, &model->body);
    if (build->failed) return;
    build_losses(&scope, argument[2], argument[3]);
}

// ---- the module

static void set_attributes(struct hec_build *build) {
    const struct hec_program *program = build->program;
    const MlirContext c = build->context;
    MlirNamedAttribute *setting =
        hec_checked(calloc((size_t)program->settings + 1, sizeof *setting));
    for (int i = 0; i < program->settings; i++) {
        const struct hec_setting *own = &program->setting[i];
        const struct hec_setting_row *row = hec_setting_row(own->key);
        setting[i] = hec_attr(c, own->key, hec_setting_attribute(c, row, own->value));
    }
    const struct hec_source *source = program->model->at.file;
    hec_set_attr(build->module, hec_attr_string(c, "sym_name", program->name));
    hec_module_put_stage(build->module, "graph");
    hec_module_put_source(build->module, source ? source->path : "");
    hec_module_put_settings(build->module, mlirDictionaryAttrGet(c, program->settings, setting));
    hec_module_put_batch(build->module, build->batch);
    hec_module_put_vocabulary(build->module, program->vocabulary);
    hec_module_put_positions(build->module, program->positions);
    if (build->world > 1) hec_module_put_world(build->module, build->world);
    free(setting);
}

// The settings that decide types.
static bool read_settings(struct hec_build *build) {
    const char *precision = hec_program_text(build->program, HEC_KEY_train_precision);
    const char *batch = hec_program_text(build->program, HEC_KEY_parallel_microbatch);
    const struct hec_span at = build->program->model->at;
    build->i32 = mlirIntegerTypeGet(build->context, 32);
    build->index = mlirIndexTypeGet(build->context);
    if (precision && (strcmp(precision, "fp32") == 0 || strcmp(precision, "bf16") == 0)) {
        build->real = mlirF32TypeGet(build->context); // bf16: pass use-bf16 says what is rounded.
    } else if (precision && strcmp(precision, "fp64") == 0) {
        build->real = mlirF64TypeGet(build->context);
    } else {
        hec_build_error(build, at, "not yet: train.precision = %s", precision ? precision : "none");
    }
    build->world = hec_program_count(build->program, HEC_KEY_cluster_nodes, 1) *
                   hec_program_count(build->program, HEC_KEY_cluster_devices, 1);
    build->group = hec_program_count(build->program, HEC_KEY_train_group, 0); // 0: one iteration.
    build->batch = hec_program_count(build->program, HEC_KEY_parallel_microbatch, 0);
    if (build->batch < 1) {
        hec_build_error(build, at, "parallel.microbatch is %s, expected a number",
                        batch ? batch : "not set");
    }
    return !build->failed;
}

// Dimensions that the compiler makes itself must not be the user's.
static void check_dims(struct hec_build *build, const struct hec_shape *shape, struct hec_span at) {
    static const char *const made[] = {"batch", "rows", "picks", "first", "block"};
    for (int i = 0; i < shape->rank; i++) {
        for (size_t k = 0; k < sizeof made / sizeof *made; k++) {
            if (strcmp(shape->dim[i].name, made[k]) != 0) continue;
            hec_build_error(build, at, "no dimension can be called %s: the compiler makes one",
                            made[k]);
        }
    }
}

static bool check_names(struct hec_build *build) {
    const struct hec_program *program = build->program;
    const struct hec_node *ids = program->model->argument[0];
    check_dims(build, &ids->shape, ids->at);
    for (int i = 0; i < program->params; i++) {
        check_dims(build, &program->param[i]->shape, program->param[i]->at);
    }
    return !build->failed;
}

MlirOperation hec_ir_build(MlirContext context, const struct hec_program *program) {
    struct hec_build build = {.context = context, .program = program, .call = hec_build_call};
    if (!read_settings(&build) || !check_names(&build)) return (MlirOperation){0};
    const MlirLocation at = hec_build_location(&build, program->model->at, NULL);
    build.module = mlirModuleGetOperation(mlirModuleCreateEmpty(at));
    set_attributes(&build);
    hec_build_symbols(&build);
    build_forward(&build);
    hec_map_free(&build.value);
    hec_map_free(&build.loop);
    hec_map_free(&build.symbol);
    hec_map_free(&build.loads);
    if (!build.failed) return build.module;
    mlirOperationDestroy(build.module);
    return (MlirOperation){0};
}
