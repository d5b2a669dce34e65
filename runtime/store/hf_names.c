// The families, and how their tensors lie.
#include "runtime/store/hf_names.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "runtime/params/mxfp4.h"

#define LAYER "model.layers.{}."
#define EXPERTS LAYER "mlp.experts."
#define ONE(path, theirs, how)                                                                     \
    {                                                                                              \
        .ours = path, .layout = { {.name = theirs, .form = how} }                                  \
    }
#define SAME(path, theirs) ONE(path, theirs, HRT_HF_SAME)
#define VECTOR(path, theirs) ONE(path, theirs, HRT_HF_VECTOR)
#define TURNED(path, theirs) ONE(path, theirs, HRT_HF_TURNED)

// All experts of a layer in one tensor: gate and up [E, 2 * F, D], or straight [E, D, 2 * F]; down [E, D, F], or [E, F, D].
#define GATE_UP LAYER "mlp.experts.gate_up_proj"
#define DOWN LAYER "mlp.experts.down_proj"
#define ALL_GATE_UP(how, which)                                                                    \
    {                                                                                              \
        .name = GATE_UP, .form = how, .together = true, .part = which, .parts = 2, .beside = DOWN, \
        .beside_parts = 1                                                                          \
    }
#define ALL_DOWN(how)                                                                              \
    { .name = DOWN, .form = how, .together = true, .beside = GATE_UP, .beside_parts = 2 }
#define EXPERT_IN(path, theirs, which)                                                             \
    {                                                                                              \
        .ours = "layers.{}.*.experts.{e}." path, .layout = {                                       \
            {.name = theirs, .form = HRT_HF_TURNED},                                               \
            ALL_GATE_UP(HRT_HF_TURNED, which),                                                     \
            ALL_GATE_UP(HRT_HF_STRAIGHT, which)                                                    \
        }                                                                                          \
    }
#define EXPERT_OUT(path, theirs)                                                                   \
    {                                                                                              \
        .ours = "layers.{}.*.experts.{e}." path, .layout = {                                       \
            {.name = theirs, .form = HRT_HF_TURNED},                                               \
            ALL_DOWN(HRT_HF_TURNED),                                                               \
            ALL_DOWN(HRT_HF_STRAIGHT)                                                              \
        }                                                                                          \
    }

// What all families have in common. The first rule that fits counts.
static const struct hrt_hf_rule common[] = {
    SAME("embed", "model.embed_tokens.weight"),
    TURNED("head", "lm_head.weight"),
    VECTOR("norm", "model.norm.weight"),
    VECTOR("layers.{}.attention_norm", LAYER "input_layernorm.weight"),
    TURNED("layers.{}.attention.wq", LAYER "self_attn.q_proj.weight"),
    TURNED("layers.{}.attention.wk", LAYER "self_attn.k_proj.weight"),
    TURNED("layers.{}.attention.wv", LAYER "self_attn.v_proj.weight"),
    ONE("layers.{}.attention.wo", LAYER "self_attn.o_proj.weight", HRT_HF_TURNED_IN),
    VECTOR("layers.{}.attention.bq", LAYER "self_attn.q_proj.bias"),
    VECTOR("layers.{}.attention.bk", LAYER "self_attn.k_proj.bias"),
    VECTOR("layers.{}.attention.bv", LAYER "self_attn.v_proj.bias"),
    VECTOR("layers.{}.attention.bo", LAYER "self_attn.o_proj.bias"),
    VECTOR("layers.{}.attention.q_norm", LAYER "self_attn.q_norm.weight"),
    VECTOR("layers.{}.attention.k_norm", LAYER "self_attn.k_norm.weight"),
    // Of latent attention.
    TURNED("layers.{}.attention.wq_a", LAYER "self_attn.q_a_proj.weight"),
    VECTOR("layers.{}.attention.bq_a", LAYER "self_attn.q_a_proj.bias"),
    VECTOR("layers.{}.attention.q_a", LAYER "self_attn.q_a_layernorm.weight"),
    TURNED("layers.{}.attention.wq_b", LAYER "self_attn.q_b_proj.weight"),
    TURNED("layers.{}.attention.wkv_a", LAYER "self_attn.kv_a_proj_with_mqa.weight"),
    VECTOR("layers.{}.attention.bkv_a", LAYER "self_attn.kv_a_proj_with_mqa.bias"),
    VECTOR("layers.{}.attention.kv_a", LAYER "self_attn.kv_a_layernorm.weight"),
    TURNED("layers.{}.attention.wkv_b", LAYER "self_attn.kv_b_proj.weight"),
    VECTOR("layers.{}.*_norm", LAYER "post_attention_layernorm.weight"),
    TURNED("layers.{}.*.router", LAYER "mlp.gate.weight"),
    VECTOR("layers.{}.*.select_bias", LAYER "mlp.gate.e_score_correction_bias"),
    EXPERT_IN("w1", EXPERTS "{e}.gate_proj.weight", 0),
    EXPERT_IN("w3", EXPERTS "{e}.up_proj.weight", 1),
    EXPERT_OUT("w2", EXPERTS "{e}.down_proj.weight"),
    TURNED("layers.{}.*.shared.w1", LAYER "mlp.shared_expert.gate_proj.weight"),
    TURNED("layers.{}.*.shared.w3", LAYER "mlp.shared_expert.up_proj.weight"),
    TURNED("layers.{}.*.shared.w2", LAYER "mlp.shared_expert.down_proj.weight"),
    ONE("layers.{}.*.shared_gate", LAYER "mlp.shared_expert_gate.weight", HRT_HF_ROW),
    TURNED("layers.{}.*.w1", LAYER "mlp.gate_proj.weight"),
    TURNED("layers.{}.*.w3", LAYER "mlp.up_proj.weight"),
    TURNED("layers.{}.*.w2", LAYER "mlp.down_proj.weight"),
    {0},
};

#undef EXPERTS
#define EXPERTS LAYER "block_sparse_moe.experts."
static const struct hrt_hf_rule mixtral[] = {
    TURNED("layers.{}.*.router", LAYER "block_sparse_moe.gate.weight"),
    EXPERT_IN("w1", EXPERTS "{e}.w1.weight", 0),
    EXPERT_IN("w3", EXPERTS "{e}.w3.weight", 1),
    EXPERT_OUT("w2", EXPERTS "{e}.w2.weight"),
    {0},
};

// Of the layer that predicts a token more, whose other parameters are called as those of `layers.{}`.
#define PREDICTOR "mtp."
static const struct hrt_hf_rule predictor[] = {
    TURNED(PREDICTOR "eh_proj", LAYER "eh_proj.weight"),
    VECTOR(PREDICTOR "enorm", LAYER "enorm.weight"),
    VECTOR(PREDICTOR "hnorm", LAYER "hnorm.weight"),
    VECTOR(PREDICTOR "norm", LAYER "shared_head.norm.weight"),
    {0},
};

// Its copies of what it shares with the model; the last of a model whose embedding is its head.
static const struct hrt_hf_rule copies[] = {
    SAME("embed", LAYER "embed_tokens.weight"),
    TURNED("head", LAYER "shared_head.head.weight"),
    SAME("embed", LAYER "shared_head.head.weight"),
};

static const struct hrt_hf_rule shared_experts[] = {
    TURNED("layers.{}.*.shared.w1", LAYER "mlp.shared_experts.gate_proj.weight"),
    TURNED("layers.{}.*.shared.w3", LAYER "mlp.shared_experts.up_proj.weight"),
    TURNED("layers.{}.*.shared.w2", LAYER "mlp.shared_experts.down_proj.weight"),
    {0},
};

// Of all experts of a layer, gate and up in turn: straight, or turned in MXFP4.
#define PART_OF_ALL(theirs, how, which, of)                                                        \
    .name = theirs, .form = how, .together = true, .interleaved = true, .part = which, .parts = of
#define EXPERT_OF_ALL(path, theirs, which, of)                                                     \
    {                                                                                              \
        .ours = "layers.{}.*.experts.{e}." path, .layout = {                                       \
            {PART_OF_ALL(theirs, HRT_HF_STRAIGHT, which, of)},                                     \
            {PART_OF_ALL(theirs "_blocks", HRT_HF_TURNED, which, of), .scales = theirs "_scales"}  \
        }                                                                                          \
    }
#define BIAS_OF_ALL(path, theirs, which, of)                                                       \
    {                                                                                              \
        .ours = "layers.{}.*.experts.{e}." path, .layout = {                                       \
            {PART_OF_ALL(theirs "_bias", HRT_HF_VECTOR, which, of)}                                \
        }                                                                                          \
    }
static const struct hrt_hf_rule gpt_oss[] = {
    VECTOR("layers.{}.attention.sinks", LAYER "self_attn.sinks"),
    TURNED("layers.{}.*.router", LAYER "mlp.router.weight"),
    VECTOR("layers.{}.*.router_bias", LAYER "mlp.router.bias"),
    EXPERT_OF_ALL("w1", GATE_UP, 0, 2),
    EXPERT_OF_ALL("w3", GATE_UP, 1, 2),
    EXPERT_OF_ALL("w2", DOWN, 0, 1),
    BIAS_OF_ALL("b1", GATE_UP, 0, 2),
    BIAS_OF_ALL("b3", GATE_UP, 1, 2),
    BIAS_OF_ALL("b2", DOWN, 0, 1),
    {0},
};

// Of all experts of a layer, gates behind one another, and then up: straight.
#define STRAIGHT_OF_ALL(path, theirs, which, of)                                                   \
    {                                                                                              \
        .ours = "layers.{}.*.experts.{e}." path, .layout = {                                       \
            {.name = LAYER theirs,                                                                 \
             .form = HRT_HF_STRAIGHT,                                                              \
             .together = true,                                                                     \
             .part = which,                                                                        \
             .parts = of}                                                                          \
        }                                                                                          \
    }
static const struct hrt_hf_rule llama4[] = {
    TURNED("layers.{}.*.router", LAYER "feed_forward.router.weight"),
    STRAIGHT_OF_ALL("w1", "feed_forward.experts.gate_up_proj", 0, 2),
    STRAIGHT_OF_ALL("w3", "feed_forward.experts.gate_up_proj", 1, 2),
    STRAIGHT_OF_ALL("w2", "feed_forward.experts.down_proj", 0, 1),
    TURNED("layers.{}.*.shared.w1", LAYER "feed_forward.shared_expert.gate_proj.weight"),
    TURNED("layers.{}.*.shared.w3", LAYER "feed_forward.shared_expert.up_proj.weight"),
    TURNED("layers.{}.*.shared.w2", LAYER "feed_forward.shared_expert.down_proj.weight"),
    TURNED("layers.{}.*.w1", LAYER "feed_forward.gate_proj.weight"),
    TURNED("layers.{}.*.w3", LAYER "feed_forward.up_proj.weight"),
    TURNED("layers.{}.*.w2", LAYER "feed_forward.down_proj.weight"),
    {0},
};

static const struct hrt_hf_family families[] = {
#define HRT_HF_FAMILY(name, rules, predictors) {#name, rules, predictors},
#include "runtime/store/hf_families.def"
};

const struct hrt_hf_family *hrt_hf_family_of(const struct hrt_program *program) {
    const char *given = hrt_program_setting(program, "names.hf.family");
    const char *name = given ? given : "";
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        if (strcmp(families[i].name, name) == 0) return &families[i];
    }
    return NULL;
}

static bool matches(const char *pattern, const char *text) {
    for (; *pattern != '*'; pattern++, text++) {
        if (*pattern != *text) return false;
        if (!*pattern) return true;
    }
    for (;; text++) {
        if (matches(pattern + 1, text)) return true;
        if (!*text || *text == '.') return false;
    }
}

static bool is_predictor(const struct hrt_param *param) {
    return strncmp(param->path, PREDICTOR, strlen(PREDICTOR)) == 0;
}

static const struct hrt_hf_rule *find_rule(const struct hrt_hf_rule *list, const char *path) {
    for (; list && list->ours; list++) {
        if (matches(list->ours, path)) return list;
    }
    return NULL;
}

const struct hrt_hf_rule *hrt_hf_rule_of(const struct hrt_hf_family *family,
                                         const struct hrt_param *param) {
    const bool predicts = family->predictors && is_predictor(param);
    char path[HRT_PATH_MAX];
    snprintf(path, sizeof path, "%s%s", predicts ? "layers.{}." : "",
             param->path + (predicts ? strlen(PREDICTOR) : 0));
    const struct hrt_hf_rule *rule = find_rule(family->own, path);
    if (!rule && predicts) rule = find_rule(predictor, param->path);
    return rule ? rule : find_rule(common, path);
}

static const struct hrt_param *find_param(const struct hrt_program *program, const char *path) {
    for (int i = 0; i < program->params; i++) {
        if (strcmp(program->param[i].path, path) == 0) return &program->param[i];
    }
    return NULL;
}

bool hrt_hf_predicts(const struct hrt_hf_family *family, const struct hrt_program *program) {
    bool found = false;
    for (int i = 0; i < program->params && !found; i++) found = is_predictor(&program->param[i]);
    return found && family->predictors;
}

bool hrt_hf_next_copy(const struct hrt_hf_family *family, const struct hrt_program *program,
                      struct hrt_hf_copy *copy) {
    const size_t count = sizeof copies / sizeof *copies;
    if (!hrt_hf_predicts(family, program)) return false;
    for (size_t i = copy->rule ? (size_t)(copy->rule - copies) + 1 : 0; i < count; i++) {
        const struct hrt_param *param = find_param(program, copies[i].ours);
        if (!param || (i == count - 1 && find_param(program, "head"))) continue;
        *copy =
            (struct hrt_hf_copy){.rule = &copies[i], .tensor = hrt_tensor_at(program, param, 0, 0)};
        return true;
    }
    return false;
}

static int64_t layers_of(const struct hrt_program *program) {
    int64_t layers = 0;
    for (int i = 0; i < program->params; i++) {
        const struct hrt_param *param = &program->param[i];
        const int64_t last = param->index_first + (param->layers - 1) * param->index_stride;
        if (last >= layers) layers = last + 1;
    }
    return layers;
}

void hrt_hf_name(const struct hrt_program *program, const struct hrt_tensor *tensor,
                 const char *pattern, char name[HRT_PATH_MAX]) {
    struct hrt_param param = *tensor->param;
    struct hrt_tensor named = *tensor;
    named.param = &param;
    if (param.index_first < 0) param.index_first = layers_of(program);
    hrt_tensor_name(&named, pattern, name);
}

// ---- shapes

struct matrix {
    int64_t in, out;
};

// What our dims are there.
static struct matrix matrix_of(const struct hrt_param *param, enum hrt_hf_form form) {
    const int64_t size = hrt_param_size(param);
    int64_t out = size;
    if (form == HRT_HF_TURNED_IN) out = param->shape[param->rank - 1];
    if (form == HRT_HF_TURNED || form == HRT_HF_STRAIGHT) out = size / (size ? param->shape[0] : 1);
    return (struct matrix){.in = out ? size / out : 0, .out = out};
}

static void push(struct hrt_hf_view *view, int64_t extent) {
    view->shape[view->rank++] = extent;
}

static void set_shape(struct hrt_hf_view *view, const struct hrt_param *param,
                      const struct hrt_hf_layout *layout, struct matrix all) {
    switch (layout->form) {
    case HRT_HF_SAME:
        for (int i = 0; i < param->rank; i++) push(view, param->shape[i]);
        break;
    case HRT_HF_VECTOR:
        push(view, all.out);
        break;
    case HRT_HF_ROW:
    case HRT_HF_STRAIGHT:
        push(view, all.in);
        push(view, all.out);
        break;
    case HRT_HF_TURNED:
    case HRT_HF_TURNED_IN:
        push(view, all.out);
        push(view, layout->scales ? all.in / HRT_MXFP4_BLOCK : all.in);
        if (layout->scales) push(view, HRT_MXFP4_BYTES);
        break;
    }
}

struct hrt_hf_view hrt_hf_view_of(const struct hrt_program *program,
                                  const struct hrt_tensor *tensor,
                                  const struct hrt_hf_layout *layout) {
    const struct hrt_param *param = tensor->param;
    const enum hrt_hf_form form = layout->form;
    struct matrix own = matrix_of(param, form);
    const int64_t parts = layout->parts ? layout->parts : 1;
    // From an element of `out` to the next one of ours, and from our first to that of the part before.
    const int64_t apart = layout->interleaved ? parts : 1;
    const int64_t before = layout->part * (layout->interleaved ? 1 : own.out);
    const bool turned = form == HRT_HF_TURNED || form == HRT_HF_TURNED_IN;
    struct hrt_hf_view view = {.place.turned = turned};
    view.place.rows = turned ? own.out : own.in;
    view.place.columns = turned ? own.in : own.out;
    if (layout->scales) // The last block of a row is whole.
        own.in = (own.in + HRT_MXFP4_BLOCK - 1) / HRT_MXFP4_BLOCK * HRT_MXFP4_BLOCK;
    view.place.row_step = turned ? apart * own.in : parts * own.out;
    view.place.step = turned ? 1 : apart;
    view.place.first = turned ? before * own.in : before;
    view.slab = parts * own.in * own.out;
    if (layout->together) {
        push(&view, program->set[param->set].experts);
        view.place.first += tensor->expert * view.slab;
    }
    set_shape(&view, param, layout, (struct matrix){own.in, parts * own.out});
    return view;
}

void hrt_hf_shape_beside(const struct hrt_program *program, const struct hrt_tensor *tensor,
                         const struct hrt_hf_layout *layout, int64_t shape[3]) {
    const struct matrix own = matrix_of(tensor->param, layout->form);
    const bool turned = layout->form == HRT_HF_TURNED;
    const int64_t out = layout->beside_parts * own.in;
    shape[0] = program->set[tensor->param->set].experts;
    shape[1] = turned ? out : own.out;
    shape[2] = turned ? own.out : out;
}
