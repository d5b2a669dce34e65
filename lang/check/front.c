// From a path to a checked program: load, define, elaborate, read settings.
#include <string.h>

#include "lang/check/adapt.h"
#include "lang/check/groups.h"
#include "lang/check/moe_settings.h"
#include "lang/check/settings.h"
#include "lang/check/unit.h"
#include "lang/parse.h"

static struct hec_checker checker_of(const struct hec_front_options *options, struct hec_diag *diag,
                                     struct hec_arena *arena) {
    static const struct hec_walk walk = {
        .call = hec_call, .statements = hec_statements, .expert = hec_elaborate_expert};
    return (struct hec_checker){
        .options = options,
        .walk = &walk,
        .arena = arena,
        .names = {.arena = arena},
        .sources = {.arena = arena},
        .symbols = {.arena = arena},
        .diag = diag,
    };
}

static struct hec_entry *find_model(struct hec_checker *checker) {
    struct hec_entry *model = NULL;
    for (int i = 0; i < checker->entries.count; i++) {
        struct hec_entry *entry = checker->entries.item[i];
        if (entry->kind != HEC_ITEM_MODEL) continue;
        if (model) {
            hec_error(checker, entry->at, "a second model: a program has one");
            hec_note(checker, model->at, "the first one");
            continue;
        }
        model = entry;
    }
    return model;
}

static void evaluate_definitions(struct hec_checker *checker) {
    for (int i = 0; i < checker->entries.count; i++) {
        if (!checker->entries.item[i]->unit) hec_entry_evaluate(checker, checker->entries.item[i]);
    }
}

static void fill_program(struct hec_checker *checker, const struct hec_unit *model) {
    struct hec_program *program = checker->program;
    program->name = model->name;
    program->model = model;
    if (model->arguments == 1 && model->argument[0] && model->argument[0]->shape.rank == 1)
        program->positions = model->argument[0]->shape.dim[0].size;
    if (model->result && model->result->shape.rank == 2)
        program->vocabulary = model->result->shape.dim[1].size;
    program->params = checker->params.count;
    program->param = (const struct hec_param *const *)checker->params.item;
    program->moes = checker->moes.count;
    program->moe = checker->moes.item;
    program->losses = checker->losses.count;
    program->loss = checker->losses.item;
}

// Mixtures whose layers have one auxiliary loss together have one f and one P.
static void check_joint(struct hec_checker *checker) {
    const struct hec_moe *first = NULL;
    for (int i = 0; i < checker->moes.count; i++) {
        const struct hec_moe *moe = checker->moes.item[i];
        if (moe->aux == 0 || moe->aux_per != HEC_AUX_ALL_LAYERS) continue;
        if (!first) first = moe;
        if (!strcmp(moe->experts.name, first->experts.name) &&
            moe->experts.size == first->experts.size && moe->topk == first->topk &&
            moe->aux == first->aux)
            continue;
        hec_error(checker, moe->at,
                  "`per = all_layers` averages over the layers of all mixtures: they need the same "
                  "number of experts, topk and aux");
        hec_note(checker, first->at, "the first of them");
        return;
    }
}

static void check_model(struct hec_checker *checker) {
    struct hec_setting_values values = {0};
    struct hec_entry *model = find_model(checker);
    const struct hec_unit *unit = NULL;
    const uint32_t errors_before = checker->diag->errors;
    hec_read_settings(checker, &values);
    const uint32_t of_settings = checker->diag->errors - errors_before; // Not of the model.
    hec_read_groups(checker);
    hec_read_adapt(checker, &values);
    if (model) {
        unit = hec_elaborate_model(checker, model->unit);
        fill_program(checker, unit);
        if (checker->diag->errors == of_settings) {
            hec_find_roles(checker);
            hec_check_adapt(checker);
            hec_apply_groups(checker);
        }
        check_joint(checker);
        for (int i = 0; i < checker->moes.count && checker->diag->errors == of_settings; i++)
            hec_moe_look(checker, checker->moes.item[i]);
    } else if (checker->diag->errors == 0) {
        hec_error(checker, HEC_NOWHERE, "%s declares no model", checker->options->path);
    }
    if (!checker->positions) checker->positions = hec_intern_text(&checker->names, "T");
    hec_elaborate_uncalled(checker);
    hec_resolve_settings(checker, &values);
    if (checker->diag->errors || !unit) return;
    hec_check_model(checker);
    hec_look_at_groups(checker);
}

bool hec_front(const struct hec_front_options *options, struct hec_diag *diag,
               struct hec_arena *arena, struct hec_program **program) {
    struct hec_checker checker = checker_of(options, diag, arena);
    const uint32_t errors_before = diag->errors;
    checker.program = HEC_NEW(arena, struct hec_program);
    hec_load(&checker, options->path);
    if (options->cluster) hec_load_cluster(&checker, options->cluster);
    if (!checker.incomplete) { // Else what a syntax error swallowed would be reported as missing.
        hec_apply_defines(&checker);
        evaluate_definitions(&checker);
        check_model(&checker);
    }
    if (diag->errors != errors_before) return false;
    checker.program->sources = checker.sources;
    *program = checker.program;
    return true;
}

bool hec_front_print_parse(const struct hec_front_options *options, struct hec_diag *diag,
                           struct hec_arena *arena, FILE *out) {
    struct hec_checker checker = checker_of(options, diag, arena);
    const char *why = NULL;
    const struct hec_source *source = hec_source_read(&checker.sources, options->path, &why);
    if (!source) return hec_error(&checker, HEC_NOWHERE, "cannot read %s: %s", options->path, why);
    const uint32_t errors_before = diag->errors;
    const struct hec_tree *tree = hec_parse(source, arena, &checker.names, diag);
    if (diag->errors != errors_before) return false;
    hec_tree_print(tree, out);
    return true;
}
