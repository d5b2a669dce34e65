// Prints a checked program for people and for golden tests: parameters, units with their nodes,
// moes, settings.
//
//   block attention (x [T, D]) -> [T, D]
//     %1 = param attention.wq [D, H, A]
//     %5 = contract x, %1 : [T, H, A]
#include <inttypes.h>
#include <string.h>

#include "lang/base/str.h"
#include "lang/base/vec.h"
#include "lang/builtins.h"
#include "lang/check.h"

// Numbers of the nodes of one unit, in order of appearance.
struct numbering {
    struct hec_arena arena;
    HEC_VEC(const struct hec_node *) nodes;
    FILE *out;
};

static void print_shape(const struct hec_shape *shape, FILE *out) {
    fputc('[', out);
    for (int i = 0; i < shape->rank; i++) fprintf(out, "%s%s", i ? ", " : "", shape->dim[i].name);
    fputc(']', out);
}

static void print_reference(const struct numbering *numbers, const struct hec_node *node) {
    if (!node) {
        fputs("?", numbers->out);
        return;
    }
    if (node->kind == HEC_NODE_ARGUMENT) {
        fputs(node->name, numbers->out);
        return;
    }
    for (int i = 0; i < numbers->nodes.count; i++) {
        if (numbers->nodes.item[i] == node) fprintf(numbers->out, "%%%d", i);
    }
}

static void print_attributes(const struct hec_node *node, FILE *out) {
    if (hec_builtin_takes(node->builtin, "eps")) {
        fprintf(out, " {eps = %g, over = %" PRId64 "}", node->attribute.eps, node->attribute.over);
    } else if (node->builtin == HEC_BUILTIN_softmax) {
        fprintf(out, " {over = %" PRId64 "}", node->attribute.over);
    } else if (node->builtin == HEC_BUILTIN_sdpa) {
        fprintf(out, " {causal = %s", node->attribute.causal ? "true" : "false");
        if (node->attribute.window) fprintf(out, ", window = %" PRId64, node->attribute.window);
        if (node->attribute.chunk) fprintf(out, ", chunk = %" PRId64, node->attribute.chunk);
        if (node->attribute.documents) fputs(", documents = true", out);
        if (node->attribute.scale > 0) fprintf(out, ", scale = %g", node->attribute.scale);
        if (node->attribute.cap > 0) fprintf(out, ", cap = %g", node->attribute.cap);
        fputc('}', out);
    } else if (node->builtin == HEC_BUILTIN_delta_rule && node->attribute.scale > 0) {
        fprintf(out, " {scale = %g}", node->attribute.scale);
    } else if (node->builtin == HEC_BUILTIN_dropout) {
        fprintf(out, " {rate = %g, number = %" PRId64 "}", node->attribute.rate,
                node->attribute.number);
    } else if (node->builtin == HEC_BUILTIN_documents) {
        fprintf(out, " {end = %" PRId64 "}", node->attribute.end);
    } else if (node->builtin == HEC_BUILTIN_ahead) {
        fprintf(out, " {by = %" PRId64 "}", node->ahead);
    } else if (node->builtin == HEC_BUILTIN_slice) {
        fprintf(out, " {begin = %" PRId64 "}", node->attribute.begin);
    } else if (node->attribute.interleaved) {
        fputs(" {interleaved = true}", out);
    }
}

static void print_node(struct numbering *numbers, const struct hec_node *node, int depth) {
    FILE *out = numbers->out;
    fprintf(out, "%*s%%%d = ", 2 * depth, "", numbers->nodes.count);
    HEC_PUSH(&numbers->arena, &numbers->nodes, node);
    switch (node->kind) {
    case HEC_NODE_PARAM:
        fprintf(out, "param %s", node->param->symbol);
        break;
    case HEC_NODE_NUMBER:
        fprintf(out, "number %.17g", node->number);
        break;
    case HEC_NODE_BUILTIN:
        fputs(hec_builtin_rows[node->builtin].name, out);
        break;
    case HEC_NODE_CALL:
        fprintf(out, "call %s", node->callee->symbol);
        break;
    case HEC_NODE_CARRIED:
        fprintf(out, "carried %d", node->index);
        break;
    case HEC_NODE_ARGUMENT:
        break;
    }
    for (int i = 0; i < node->operands; i++) {
        fputs(i ? ", " : " ", out);
        print_reference(numbers, node->operand[i]);
    }
    if (node->kind == HEC_NODE_BUILTIN) print_attributes(node, out);
    fputs(" : ", out);
    print_shape(&node->shape, out);
    if (!node->batched) fputs(" once", out);
    if (node->name && node->kind != HEC_NODE_PARAM) fprintf(out, "  # %s", node->name);
    fputc('\n', out);
}

static void print_body(struct numbering *numbers, const struct hec_body *body, int depth);

static void print_loop(struct numbering *numbers, const struct hec_loop *loop, int depth) {
    FILE *out = numbers->out;
    fprintf(out, "%*sloop %s, %" PRId64 " times (", 2 * depth, "", loop->variable, loop->count);
    for (int i = 0; i < loop->carried; i++) {
        fprintf(out, "%s%s = ", i ? ", " : "", loop->argument[i]->name);
        print_reference(numbers, loop->init[i]);
    }
    fputs(") {\n", out);
    print_body(numbers, &loop->body, depth + 1);
    fprintf(out, "%*syield ", 2 * depth + 2, "");
    for (int i = 0; i < loop->carried; i++) {
        fputs(i ? ", " : "", out);
        print_reference(numbers, loop->yield[i]);
    }
    fprintf(out, "\n%*s}\n", 2 * depth, "");
}

static void print_body(struct numbering *numbers, const struct hec_body *body, int depth) {
    for (int i = 0; i < body->items; i++) {
        if (body->item[i].loop)
            print_loop(numbers, body->item[i].loop, depth);
        else
            print_node(numbers, body->item[i].node, depth);
    }
}

static void print_moe(const struct hec_moe *moe, FILE *out) {
    static const char *const group_scores[] = {"best", "two_best"};
    static const char *const weights[] = {"scores", "renormalized", "softmax_of_topk"};
    static const char *const per[] = {"layer", "sequence", "batch", "all_layers"};
    static const char *const drops[] = {"lowest", "position"};
    fprintf(out, "  experts %s = %" PRId64 " x %s", moe->experts.name, moe->experts.size,
            moe->expert->symbol);
    for (int i = 0; i < moe->shared_count; i++) fprintf(out, ", shared %s", moe->shared[i]->symbol);
    if (moe->shared_gate) fprintf(out, ", gate %s", moe->shared_gate->symbol);
    fprintf(out, "\n  router score = %s, topk = %" PRId64, hec_score_words[moe->score], moe->topk);
    if (moe->groups > 1)
        fprintf(out, ", groups = %" PRId64 ", topk_groups = %" PRId64 ", group_score = %s",
                moe->groups, moe->topk_groups, group_scores[moe->group_score]);
    fprintf(out, ", weight = %s%s, scale = %g", weights[moe->weight],
            moe->weight_on_input ? " on input" : "", moe->scale);
    if (moe->router_bias) fprintf(out, ", bias %s", moe->router_bias->symbol);
    if (moe->jitter > 0) fprintf(out, ", jitter = %g", moe->jitter);
    if (moe->capacity > 0)
        fprintf(out, ", capacity = %g, drop = %s", moe->capacity, drops[moe->drop]);
    fprintf(out, "\n  balance aux = %g, per = %s, z = %g", moe->aux, per[moe->aux_per], moe->z);
    if (moe->select_bias) fprintf(out, ", bias %s += %g", moe->select_bias->symbol, moe->bias_rate);
    fputc('\n', out);
}

static void print_inner(const struct hec_body *body, FILE *out);

static void print_losses(const struct numbering *numbers, const struct hec_program *program) {
    for (int i = 0; i < program->losses; i++) {
        const struct hec_named_loss *loss = &program->loss[i];
        fprintf(numbers->out, "  loss %s {weight = %g} = %s ", loss->name, loss->weight,
                loss->temperature > 0 ? "distill" : "cross_entropy");
        print_reference(numbers, loss->logits);
        if (loss->targets) fputs(", ", numbers->out);
        if (loss->targets) print_reference(numbers, loss->targets);
        if (loss->temperature > 0) fprintf(numbers->out, " {temperature = %g}", loss->temperature);
        fputc('\n', numbers->out);
    }
}

// `program`: the unit is its model; NULL: it is another one.
static void print_unit(const struct hec_unit *unit, const struct hec_program *program, FILE *out) {
    static const char *const kinds[] = {"model", "block", "moe"};
    struct numbering numbers = {.out = out};
    fprintf(out, "\n%s %s (", kinds[unit->kind], unit->symbol);
    for (int i = 0; i < unit->arguments; i++) {
        fprintf(out, "%s%s ", i ? ", " : "", unit->argument[i]->name);
        print_shape(&unit->argument[i]->shape, out);
    }
    fputs(")\n", out);
    if (unit->moe) {
        print_moe(unit->moe, out);
        print_unit(unit->moe->expert, NULL, out);
        for (int i = 0; i < unit->moe->shared_count; i++)
            print_unit(unit->moe->shared[i], NULL, out);
        return;
    }
    print_body(&numbers, &unit->body, 1);
    if (program) print_losses(&numbers, program);
    fputs("  return ", out);
    print_reference(&numbers, unit->result);
    fputc('\n', out);
    hec_arena_free(&numbers.arena);
    print_inner(&unit->body, out);
}

static void print_inner(const struct hec_body *body, FILE *out) {
    for (int i = 0; i < body->items; i++) {
        const struct hec_item *item = &body->item[i];
        if (item->loop)
            print_inner(&item->loop->body, out);
        else if (item->node->kind == HEC_NODE_CALL)
            print_unit(item->node->callee, NULL, out);
    }
}

static void print_rates(FILE *out, const struct hec_rates *rates) {
    if (rates->lr_scale != 0) fprintf(out, ", lr x %g", rates->lr_scale);
    fputs(rates->decay ? ", decay" : "", out);
    if (rates->decay_rate != 0) fprintf(out, " %g", rates->decay_rate);
}

static void print_param(const struct hec_param *param, FILE *out) {
    fprintf(out, "param %s ", param->symbol);
    print_shape(&param->shape, out);
    if (param->layers) {
        fprintf(out, " x %" PRId64 " (layers from %" PRId64 ", step %" PRId64 ")", param->layers,
                param->index_first, param->index_stride);
    }
    switch (param->init) {
    case HEC_INIT_NORMAL:
        fprintf(out, " normal(%g)", param->init_value);
        break;
    case HEC_INIT_ZEROS:
        fputs(" zeros", out);
        break;
    case HEC_INIT_ONES:
        fputs(" ones", out);
        break;
    case HEC_INIT_ROPE:
        fprintf(out, " rope(theta = %g", param->init_value);
        if (param->rope.factor != 0)
            fprintf(out, ", factor = %g, low = %g, high = %g, amplitude = %.4g", param->rope.factor,
                    param->rope.low, param->rope.high, param->rope.amplitude);
        if (param->rope.original > 0) fprintf(out, ", original = %g", param->rope.original);
        fputc(')', out);
        break;
    }
    if (!param->layer_rates) print_rates(out, &param->rates);
    for (int64_t layer = 0; param->layer_rates && layer < param->layers; layer++) {
        fprintf(out, "%s %" PRId64, layer ? ";" : ", by layer:", layer);
        print_rates(out, &param->layer_rates[layer]);
    }
    const char *state = param->frozen ? ", frozen" : param->trainable ? "" : ", constant";
    fprintf(out, "%s  # %s%s%s\n", state, param->path, param->role ? ": " : "",
            param->role ? hec_role_text(param->role) : "");
}

// Up to the largest number there is: a model that is checked need not be one that fits anywhere.
static int64_t times(int64_t a, int64_t b) {
    int64_t product;
    return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

static int64_t elements(const struct hec_program *program) {
    int64_t sum = 0;
    for (int i = 0; i < program->params; i++) {
        const struct hec_param *param = program->param[i];
        int64_t product = param->trainable;
        for (int j = 0; j < param->shape.rank; j++)
            product = times(product, param->shape.dim[j].size);
        product = times(product, param->layers ? param->layers : 1);
        if (__builtin_add_overflow(sum, product, &sum)) return INT64_MAX;
    }
    return sum;
}

void hec_program_print(const struct hec_program *program, FILE *out) {
    fprintf(out,
            "program %s: %" PRId64 " positions, vocabulary %" PRId64 ", %" PRId64
            " trained parameters\n\n",
            program->name, program->positions, program->vocabulary, elements(program));
    for (int i = 0; i < program->params; i++) print_param(program->param[i], out);
    print_unit(program->model, program, out);
    fputc('\n', out);
    for (int i = 0; i < program->settings; i++) {
        const struct hec_setting *setting = &program->setting[i];
        fprintf(out, "%s = %s%s\n", setting->key, *setting->value ? setting->value : "\"\"",
                setting->given ? "" : "  # default");
    }
}
