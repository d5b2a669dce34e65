// The module: its attributes and symbols, and @forward with the loss. What a unit computes is in
// build_unit.c, operations in build_node.c, mixtures of experts in build_moe.c.
#include "ir/build_parts.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_MAX = 512 };

_Static_assert((int)HEC_EXPERTS_MAX == (int)HEC_IR_EXPERTS_MAX, "what is checked can be built");

MlirLocation hec_build_location(struct hec_build *build, struct hec_span at, const char *name) {
    const MlirLocation place = at.file
                                   ? hec_loc_file(build->context, at.file->path, at.line, at.column)
                                   : mlirLocationUnknownGet(build->context);
    return hec_loc_named(name, place);
}

void hec_build_at(struct hec_scope *scope, struct hec_span at, const char *name) {
    scope->b.at = hec_build_location(scope->build, at, name);
}

void hec_build_error(struct hec_build *build, struct hec_span at, const char *format, ...) {
    char text[TEXT_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    mlirEmitError(hec_build_location(build, at, NULL), text);
    build->failed = true;
}

// Names that later stages give away.
static bool is_reserved(const char *name) {
    return strcmp(name, "forward") == 0 || strcmp(name, "backward") == 0 ||
           strcmp(name, "logits") == 0;
}

char *hec_build_symbol(struct hec_build *build, const char *wanted) {
    const size_t room = strlen(wanted) + 24;
    char *name = hec_checked(malloc(room));
    snprintf(name, room, "%s", wanted);
    for (int i = 1;
         is_reserved(name) || !mlirOperationIsNull(hec_find_symbol(build->module, HEC_STR(name)));
         i++) {
        snprintf(name, room, "%s.%d", wanted, i);
    }
    return name;
}

// A value that depends on tokens has a leading batch, in an expert's body rows for batch and T. A
// parameter of an expert has all experts first.
MlirType hec_build_type(const struct hec_scope *scope, const struct hec_shape *shape, bool batched,
                        bool integer) {
    const struct hec_build *build = scope->build;
    struct hec_tensor t = {.element = integer ? build->i32 : build->real};
    int from = 0;
    if (batched && scope->expert_of) {
        const int64_t tokens = build->batch * shape->dim[0].size;
        hec_tensor_append(&t, HEC_STR("rows"), tokens * scope->expert_of->topk);
        from = 1;
    } else if (batched) {
        hec_tensor_append(&t, HEC_STR("batch"), build->batch);
    }
    for (int i = from; i < shape->rank; i++) {
        hec_tensor_append(&t, HEC_STR(shape->dim[i].name), shape->dim[i].size);
    }
    return hec_tensor_type(&t);
}

// ---- symbols

static struct hec_builder top_builder(struct hec_build *build, struct hec_span at,
                                      const char *name) {
    return hec_builder_end(hec_module_body(build->module), hec_build_location(build, at, name));
}

// Short where that reads back as the same number.
static void number_text(double value, char text[40]) {
    snprintf(text, 40, "%.15g", value);
    if (strtod(text, NULL) != value) snprintf(text, 40, "%.17g", value);
}

enum { INIT_ROOM = 256 };

// "normal(0.02)", "rope(10000)", "rope(10000, 4, -1, 0, 1)".
static void init_text(const struct hec_param *param, char text[INIT_ROOM]) {
    const size_t room = INIT_ROOM;
    const char *word = NULL;
    switch (param->init) {
    case HEC_INIT_ZEROS:
        snprintf(text, room, "zeros");
        return;
    case HEC_INIT_ONES:
        snprintf(text, room, "ones");
        return;
    case HEC_INIT_NORMAL:
        word = "normal";
        break;
    case HEC_INIT_ROPE:
        word = "rope";
        break;
    }
    assert(word);
    char number[5][40];
    number_text(param->init_value, number[0]);
    if (param->rope.factor == 0) {
        snprintf(text, room, "%s(%s)", word, number[0]);
        return;
    }
    const struct hec_rope *rope = &param->rope;
    const double value[] = {rope->factor, rope->low, rope->high, rope->amplitude};
    for (int i = 0; i < 4; i++) number_text(value[i], number[1 + i]);
    snprintf(text, room, "%s(%s, %s, %s, %s, %s)", word, number[0], number[1], number[2], number[3],
             number[4]);
}

static void build_param(struct hec_build *build, const struct hec_param *param) {
    enum { FIXED = 7, MOST = 10 };
    const MlirContext c = build->context;
    const struct hec_scope top = {.build = build};
    char *symbol = hec_build_symbol(build, param->symbol), init[INIT_ROOM];
    init_text(param, init);
    MlirNamedAttribute attribute[MOST] = {
        hec_attr_string(c, "sym_name", symbol),
        hec_attr_type(c, "type", hec_build_type(&top, &param->shape, false, false)),
        hec_attr_int(c, "layers", param->layers),
        hec_attr_string(c, "path", param->path),
        hec_attr_string(c, "init", init),
        hec_attr_bool(c, "decay", param->decay),
        hec_attr_bool(c, "trainable", param->trainable),
    };
    int count = FIXED;
    if (param->layers > 0) {
        attribute[count++] = hec_attr_int(c, "index_first", param->index_first);
        attribute[count++] = hec_attr_int(c, "index_stride", param->index_stride);
    }
    if (param->expert_of) {
        const MlirOperation set = {(void *)hec_map_get(&build->symbol, param->expert_of)};
        assert(!mlirOperationIsNull(set));
        attribute[count++] = hec_attr_symbol(c, "set", hec_get_string(set, "sym_name"));
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
    if (!moe->select_bias || moe->bias_rate == 0) return;
    const MlirContext c = build->context;
    const MlirOperation set = {(void *)hec_map_get(&build->symbol, moe)};
    const MlirOperation bias = {(void *)hec_map_get(&build->symbol, moe->select_bias)};
    hec_set_attr(set, hec_attr_float(c, "bias_rate", moe->bias_rate));
    hec_set_attr(set, hec_attr_symbol(c, "select_bias", hec_get_string(bias, "sym_name")));
}

// A slot that the runtime reads. It holds "loads", of `set`, or "logits", for which `set` is null.
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
    if (set.ptr) hec_set_attr(slot, hec_attr_symbol(c, "set", hec_get_string(set, "sym_name")));
    return slot;
}

// Counts of tokens per expert, in every layer: the runtime reads them.
static void build_loads(struct hec_build *build, const struct hec_moe *moe) {
    const MlirOperation set = {(void *)hec_map_get(&build->symbol, moe)};
    const MlirStringRef name = hec_get_string(set, "sym_name");
    char symbol[TEXT_MAX];
    snprintf(symbol, sizeof symbol, "%.*s.loads", (int)name.length, name.data);
    struct hec_tensor loads = {.element = build->i32};
    hec_tensor_append(&loads, HEC_STR(moe->experts.name), moe->experts.size);
    const MlirOperation slot =
        build_slot(build, symbol, hec_tensor_type(&loads), moe->layers, "loads", set, moe->at);
    *hec_map_at(&build->loads, moe) = (intptr_t)slot.ptr;
}

static void build_symbols(struct hec_build *build) {
    const struct hec_program *program = build->program;
    for (int i = 0; i < program->moes; i++) build_set(build, program->moe[i]);
    for (int i = 0; i < program->params; i++) build_param(build, program->param[i]);
    for (int i = 0; i < program->moes; i++) link_select_bias(build, program->moe[i]);
    for (int i = 0; i < program->moes; i++) build_loads(build, program->moe[i]);
    const struct hec_node *logits = program->model->result;
    const struct hec_scope top = {.build = build};
    build_slot(build, "logits", hec_build_type(&top, &logits->shape, true, false), 0, "logits",
               (MlirOperation){0}, logits->at);
}

// ---- @forward

int64_t hec_build_joint(const struct hec_program *program, const struct hec_moe **moe) {
    int64_t layers = 0;
    for (int i = 0; i < program->moes; i++) {
        const struct hec_moe *other = program->moe[i];
        if (other->aux == 0 || other->aux_per != HEC_AUX_ALL_LAYERS) continue;
        layers += other->layers > 0 ? other->layers : 1;
        *moe = other;
    }
    return layers;
}

// The loss of all layers together: of their mean scores and fractions, whose sums are known now. Added to
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

// loss = cross_entropy + share * auxiliary, and its parts.
static void build_loss(struct hec_scope *scope, MlirValue logits, MlirValue targets,
                       MlirValue scale, MlirValue share) {
    struct hec_build *build = scope->build;
    const struct hec_span at = build->program->model->result->at;
    hec_build_at(scope, at, NULL);
    const MlirNamedAttribute slot = hec_attr_symbol(build->context, "slot", HEC_STR("logits"));
    hec_build_op(&scope->b, HEC_OP_stash, 1, &logits, 0, NULL, 1, &slot);

    hec_build_at(scope, at, "cross_entropy");
    const MlirValue in[] = {logits, targets, scale};
    MlirValue result[3];
    result[1] = hec_build_one(scope, HEC_OP_cross_entropy, 3, in, 0, NULL);
    if (build->failed) return;
    build_joint_loss(scope);
    const MlirValue auxiliary = scope->sums.of[HEC_SUM_AUXILIARY];
    result[0] = result[1], result[2] = auxiliary;
    if (mlirValueIsNull(auxiliary)) {
        hec_build_at(scope, at, "auxiliary");
        result[2] = hec_build_fill(&scope->b, mlirValueGetType(scale), 0);
    } else {
        hec_build_at(scope, at, NULL);
        const MlirValue share_of[] = {share, auxiliary};
        const MlirValue part = hec_build_one(scope, HEC_OP_mul, 2, share_of, 0, NULL);
        hec_build_at(scope, at, "loss");
        const MlirValue sum[] = {result[1], part};
        result[0] = hec_build_one(scope, HEC_OP_add, 2, sum, 0, NULL);
    }
    hec_build_at(scope, at, NULL);
    hec_build_return(&scope->b, scope->func, 3, result);
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
        hec_build_location(build, model->at, "share"),
    };
    const MlirLocation place = hec_build_location(build, model->at, NULL);
    MlirBlock entry;
    scope.func = hec_build_func(hec_module_body(build->module), (MlirOperation){0}, "forward", 4,
                                type, at, place, &entry);
    scope.b = hec_builder_end(entry, place);
    MlirValue argument[4];
    for (int i = 0; i < 4; i++) argument[i] = mlirBlockGetArgument(entry, i);
    *hec_map_at(&build->value, ids) = (intptr_t)argument[0].ptr;
    hec_build_body(&scope, &model->body);
    if (build->failed) return;
    build_loss(&scope, hec_build_value_of(&scope, model->result), argument[1], argument[2],
               argument[3]);
}

// ---- the module

static void set_attributes(struct hec_build *build) {
    const struct hec_program *program = build->program;
    const MlirContext c = build->context;
    MlirNamedAttribute *setting =
        hec_checked(calloc((size_t)program->settings + 1, sizeof *setting));
    for (int i = 0; i < program->settings; i++) {
        setting[i] = hec_attr_string(c, program->setting[i].key, program->setting[i].value);
    }
    const struct hec_source *source = program->model->at.file;
    hec_set_attr(build->module, hec_attr_string(c, "sym_name", program->name));
    hec_set_attr(build->module, hec_attr_string(c, "hecate.stage", "graph"));
    hec_set_attr(build->module, hec_attr_string(c, "hecate.source", source ? source->path : ""));
    hec_set_attr(build->module, hec_attr(c, "hecate.settings",
                                         mlirDictionaryAttrGet(c, program->settings, setting)));
    hec_set_attr(build->module, hec_attr_int(c, "hecate.batch", build->batch));
    hec_set_attr(build->module, hec_attr_int(c, "hecate.vocabulary", program->vocabulary));
    hec_set_attr(build->module, hec_attr_int(c, "hecate.positions", program->positions));
    if (build->world > 1) {
        const char *experts = hec_program_setting(program, "parallel.experts");
        hec_set_attr(build->module, hec_attr_int(c, "hecate.world", build->world));
        hec_set_attr(build->module, hec_attr_string(c, "hecate.experts", experts));
        const char *bucket = hec_program_setting(program, "parallel.bucket");
        hec_set_attr(build->module, hec_attr_int(c, "hecate.bucket", strtoll(bucket, NULL, 10)));
        const char *dense = hec_program_setting(program, "parallel.dense");
        hec_set_attr(build->module, hec_attr_string(c, "hecate.dense", dense));
        const char *rows = hec_program_setting(program, "parallel.rows_max");
        if (strcmp(rows, "auto") != 0)
            hec_set_attr(build->module,
                         hec_attr_int(c, "hecate.rows_max", strtoll(rows, NULL, 10)));
    }
    free(setting);
}

// 1 when it is not set.
static int64_t count_of(const struct hec_build *build, const char *key) {
    const char *text = hec_program_setting(build->program, key);
    return text ? strtoll(text, NULL, 10) : 1;
}

// The settings that decide types.
static bool read_settings(struct hec_build *build) {
    const char *precision = hec_program_setting(build->program, "train.precision");
    const char *batch = hec_program_setting(build->program, "parallel.microbatch");
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
    build->world = count_of(build, "cluster.nodes") * count_of(build, "cluster.devices");
    build->group = count_of(build, "train.group"); // 0 of a word: iteration.
    char *end = NULL;
    build->batch = batch ? strtoll(batch, &end, 10) : 0;
    if (build->batch < 1 || *end) {
        hec_build_error(build, at, "parallel.microbatch is %s, expected a number",
                        batch ? batch : "not set");
    }
    return !build->failed;
}

// Dimensions that the compiler makes itself must not be the user's.
static void check_dims(struct hec_build *build, const struct hec_shape *shape, struct hec_span at) {
    static const char *const made[] = {"batch", "rows", "picks", "first"};
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
    struct hec_build build = {.context = context, .program = program};
    if (!read_settings(&build) || !check_names(&build)) return (MlirOperation){0};
    const MlirLocation at = hec_build_location(&build, program->model->at, NULL);
    build.module = mlirModuleGetOperation(mlirModuleCreateEmpty(at));
    set_attributes(&build);
    build_symbols(&build);
    build_forward(&build);
    hec_map_free(&build.value);
    hec_map_free(&build.loop);
    hec_map_free(&build.symbol);
    hec_map_free(&build.loads);
    if (!build.failed) return build.module;
    mlirOperationDestroy(build.module);
    return (MlirOperation){0};
}
