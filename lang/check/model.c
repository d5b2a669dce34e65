// Checks of a model that need all of it elaborated.
#include <stdlib.h>
#include <string.h>

#include "lang/check/unit.h"

typedef void hec_look(struct hec_checker *checker, const struct hec_node *node);

// Looks at every node of the body, and of the blocks that it calls.
static void look_in(struct hec_checker *checker, const struct hec_body *body, hec_look *look) {
    for (int i = 0; i < body->items; i++) {
        const struct hec_node *node = body->item[i].node;
        if (!node) {
            look_in(checker, &body->item[i].loop->body, look);
        } else if (node->kind == HEC_NODE_CALL) {
            look_in(checker, &node->callee->body, look);
        } else if (node->kind == HEC_NODE_BUILTIN) {
            look(checker, node);
        }
    }
}

// Every index is one of the model's ids, which are those of its logits: tables have at least as many
// rows. Further rows are padding.
static void look_at_table(struct hec_checker *checker, const struct hec_node *node) {
    if (node->builtin != HEC_BUILTIN_gather) return;
    const struct hec_dim rows = node->operand[0]->shape.dim[0];
    const struct hec_shape *logits = &checker->program->model->result->shape;
    const struct hec_dim vocabulary = logits->dim[logits->rank - 1];
    if (rows.size >= vocabulary.size) return;
    hec_error(checker, node->at, "the table has %lld rows, the model's token ids go up to %lld",
              (long long)rows.size, (long long)vocabulary.size - 1);
    hec_detail(checker, "its first dim is `%s` = %lld, the model returns `%s` = %lld", rows.name,
               (long long)rows.size, vocabulary.name, (long long)vocabulary.size);
}

// The token that ends documents is one of the model's token ids.
static void look_at_end(struct hec_checker *checker, const struct hec_node *node) {
    const int64_t end = node->attribute.end, vocabulary = checker->program->vocabulary;
    if (node->builtin != HEC_BUILTIN_documents || end < vocabulary) return;
    hec_error(checker, node->at,
              "no token is %lld, which ends documents here: the model's token ids go up to %lld",
              (long long)end, (long long)vocabulary - 1);
}

// Elements of a value or a parameter: as the IR has it, so that sums of bytes stay in range.
static const double elements_max = 0x1p40;

static double elements_of(const struct hec_shape *shape) {
    double elements = 1;
    for (int i = 0; i < shape->rank; i++) elements *= (double)shape->dim[i].size;
    return elements;
}

static void check_elements(struct hec_checker *checker, struct hec_span at,
                           const struct hec_shape *shape, double times) {
    const double elements = elements_of(shape) * times;
    if (elements <= elements_max) return;
    hec_error(checker, at, "too large: %s elements, more than %s",
              hec_number_text(checker->arena, elements),
              hec_number_text(checker->arena, elements_max));
    if (times > 1)
        hec_detail(checker, "it is %s, times a microbatch of %s",
                   hec_shape_text(checker->arena, shape), hec_number_text(checker->arena, times));
}

static void look_at_size(struct hec_checker *checker, const struct hec_node *node) {
    check_elements(checker, node->at, &node->shape,
                   node->batched
                       ? (double)hec_program_count(checker->program, HEC_KEY_parallel_microbatch, 1)
                       : 1);
}

// Files name parameters by their paths.
static void check_path(struct hec_checker *checker, const struct hec_param *param) {
    const int64_t last = param->layers > 0 ? param->layers - 1 : 0;
    const int64_t layer = param->index_first + last * param->index_stride;
    const int64_t expert = param->expert_of ? param->expert_of->experts.size - 1 : 0;
    const int64_t length = hec_path_length(param->path, layer, expert);
    if (length <= HEC_PATH_MAX) return;
    hec_error(checker, param->at, "the path of `%s` has %lld bytes, at most %d: give shorter names",
              param->name, (long long)length, HEC_PATH_MAX);
    hec_detail(checker, "%.*s...", HEC_PATH_MAX, param->path);
}

static void check_params(struct hec_checker *checker) {
    for (int i = 0; i < checker->params.count; i++) {
        const struct hec_param *param = checker->params.item[i];
        check_elements(checker, param->at, &param->shape, 1);
        check_path(checker, param);
    }
}

// The model sees what it has to predict: almost always a mistake.
static void look_at_attention(struct hec_checker *checker, const struct hec_node *node) {
    if (node->builtin != HEC_BUILTIN_sdpa || node->attribute.causal) return;
    hec_warning(checker, node->at, "attention sees the tokens that `%s` has to predict",
                hec_program_text(checker->program, HEC_KEY_train_objective));
    hec_note(checker, HEC_NOWHERE, "use `causal = true`, or another `train.objective`");
}

static bool has_objective(const struct hec_program *program, const char *word) {
    return strcmp(hec_program_text(program, HEC_KEY_train_objective), word) == 0;
}

// Logits of all losses are of one vocabulary, and predict what they do not know.
static void check_losses(struct hec_checker *checker) {
    const struct hec_program *program = checker->program;
    const struct hec_node *result = program->model->result;
    if (result->ahead > 0)
        hec_error(checker, result->at,
                  "`%s` returns logits that know the tokens which they predict: they depend on "
                  "`ahead(ids, %lld)`",
                  program->name, (long long)result->ahead);
    const bool next = has_objective(program, "next_token"),
               policy = has_objective(program, "dpo") || has_objective(program, "policy");
    for (int i = 0; i < program->losses; i++) {
        const struct hec_named_loss *loss = &program->loss[i];
        if (policy)
            hec_error(checker, loss->at, "not yet: a loss by name with `train.objective = %s`",
                      hec_program_text(program, HEC_KEY_train_objective));
        else if (loss->temperature > 0 && !next)
            hec_error(checker, loss->at, "`distill` needs `train.objective = next_token`");
        if (hec_shape_same(&loss->logits->shape, &result->shape)) continue;
        hec_error(checker, loss->logits->at, "`%s` has logits %s, the model returns %s", loss->name,
                  hec_shape_text_beside(checker->arena, &loss->logits->shape, &result->shape),
                  hec_shape_text_beside(checker->arena, &result->shape, &loss->logits->shape));
    }
}

static void check_weight(struct hec_checker *checker) {
    const struct hec_program *program = checker->program;
    const char *weight = hec_program_text(program, HEC_KEY_train_objective_weight);
    if (program->losses || atof(weight) > 0) return;
    hec_error(checker, program->model->at,
              "`%s` learns from nothing: `train.objective.weight` is 0, and it has no loss by name",
              program->name);
}

static void check_gradients(struct hec_checker *checker) {
    const struct hec_program *program = checker->program;
    const bool narrow = !strcmp(hec_program_text(program, HEC_KEY_parallel_gradients), "bf16");
    if (!narrow || strcmp(hec_program_text(program, HEC_KEY_train_precision), "fp64")) return;
    hec_error(checker, HEC_NOWHERE,
              "`parallel.gradients = bf16` needs `train.precision = fp32` or `bf16`");
}

// Masked training has no tokens ahead: targets are those of the masked positions.
static void look_at_ahead(struct hec_checker *checker, const struct hec_node *node) {
    if (node->builtin != HEC_BUILTIN_ahead) return;
    hec_error(checker, node->at, "`ahead` needs `train.objective = next_token`");
}

void hec_check_model(struct hec_checker *checker) {
    const struct hec_program *program = checker->program;
    const struct hec_node *result = program->model->result;
    if (!result->batched)
        hec_error(checker, result->at, "`%s` returns the same for all tokens: use its ids",
                  program->name);
    check_params(checker);
    look_in(checker, &program->model->body, look_at_size);
    look_in(checker, &program->model->body, look_at_table);
    look_in(checker, &program->model->body, look_at_end);
    check_losses(checker);
    check_weight(checker);
    check_gradients(checker);
    const bool masked = has_objective(program, "masked");
    look_in(checker, &program->model->body, masked ? look_at_ahead : look_at_attention);
}
