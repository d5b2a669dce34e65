// What can be said of a model only when all of it has been elaborated.
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
    if (node->builtin != HEC_GATHER) return;
    const struct hec_dim rows = node->operand[0]->shape.dim[0];
    const struct hec_shape *logits = &checker->program->model->result->shape;
    const struct hec_dim vocabulary = logits->dim[logits->rank - 1];
    if (rows.size >= vocabulary.size) return;
    hec_error(checker, node->at, "the table has %lld rows, the model's token ids go up to %lld",
              (long long)rows.size, (long long)vocabulary.size - 1);
    hec_detail(checker, "its first dim is `%s` = %lld, the model returns `%s` = %lld", rows.name,
               (long long)rows.size, vocabulary.name, (long long)vocabulary.size);
}

// The model sees what it has to predict: almost always a mistake.
static void look_at_attention(struct hec_checker *checker, const struct hec_node *node) {
    if (node->builtin != HEC_SDPA || node->attribute.causal) return;
    hec_warning(checker, node->at, "attention sees the tokens that `next_token` has to predict");
    hec_note(checker, HEC_NOWHERE, "use `causal = true`, or another `train.objective`");
}

void hec_check_model(struct hec_checker *checker) {
    const struct hec_program *program = checker->program;
    look_in(checker, &program->model->body, look_at_table);
    if (!strcmp(hec_program_setting(program, "train.objective"), "next_token"))
        look_in(checker, &program->model->body, look_at_attention);
}
