// The families, and how their tensors lie.
#include "runtime/hf/names.h"

#include <stddef.h>
#include <string.h>

#define LAYER "model.layers.{}."
#define EXPERTS LAYER "mlp.experts."
#define SAME(ours, theirs)                                                                         \
    { ours, theirs, HRT_HF_SAME, NULL, 0, 0 }
#define VECTOR(ours, theirs)                                                                       \
    { ours, theirs, HRT_HF_VECTOR, NULL, 0, 0 }
#define TURNED(ours, theirs)                                                                       \
    { ours, theirs, HRT_HF_TURNED, NULL, 0, 0 }
#define EXPERT(name, theirs, fused, part, parts)                                                   \
    { "layers.{}.*.experts.{e}." name, theirs, HRT_HF_TURNED, fused, part, parts }

// What all families have in common. The first rule that fits counts.
static const struct hrt_hf_rule common[] = {
    SAME("embed", "model.embed_tokens.weight"),
    TURNED("head", "lm_head.weight"),
    VECTOR("norm", "model.norm.weight"),
    VECTOR("layers.{}.attention_norm", LAYER "input_layernorm.weight"),
    TURNED("layers.{}.attention.wq", LAYER "self_attn.q_proj.weight"),
    TURNED("layers.{}.attention.wk", LAYER "self_attn.k_proj.weight"),
    TURNED("layers.{}.attention.wv", LAYER "self_attn.v_proj.weight"),
    {"layers.{}.attention.wo", LAYER "self_attn.o_proj.weight", HRT_HF_TURNED_IN, NULL, 0, 0},
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
    EXPERT("w1", EXPERTS "{e}.gate_proj.weight", EXPERTS "gate_up_proj", 0, 2),
    EXPERT("w3", EXPERTS "{e}.up_proj.weight", EXPERTS "gate_up_proj", 1, 2),
    EXPERT("w2", EXPERTS "{e}.down_proj.weight", EXPERTS "down_proj", 0, 1),
    TURNED("layers.{}.*.shared.w1", LAYER "mlp.shared_expert.gate_proj.weight"),
    TURNED("layers.{}.*.shared.w3", LAYER "mlp.shared_expert.up_proj.weight"),
    TURNED("layers.{}.*.shared.w2", LAYER "mlp.shared_expert.down_proj.weight"),
    {"layers.{}.*.shared_gate", LAYER "mlp.shared_expert_gate.weight", HRT_HF_ROW, NULL, 0, 0},
    TURNED("layers.{}.*.w1", LAYER "mlp.gate_proj.weight"),
    TURNED("layers.{}.*.w3", LAYER "mlp.up_proj.weight"),
    TURNED("layers.{}.*.w2", LAYER "mlp.down_proj.weight"),
    {0},
};

#undef EXPERTS
#define EXPERTS LAYER "block_sparse_moe.experts."
static const struct hrt_hf_rule mixtral[] = {
    TURNED("layers.{}.*.router", LAYER "block_sparse_moe.gate.weight"),
    EXPERT("w1", EXPERTS "{e}.w1.weight", LAYER "mlp.experts.gate_up_proj", 0, 2),
    EXPERT("w3", EXPERTS "{e}.w3.weight", LAYER "mlp.experts.gate_up_proj", 1, 2),
    EXPERT("w2", EXPERTS "{e}.w2.weight", LAYER "mlp.experts.down_proj", 0, 1),
    {0},
};

static const struct hrt_hf_rule shared_experts[] = {
    TURNED("layers.{}.*.shared.w1", LAYER "mlp.shared_experts.gate_proj.weight"),
    TURNED("layers.{}.*.shared.w3", LAYER "mlp.shared_experts.up_proj.weight"),
    TURNED("layers.{}.*.shared.w2", LAYER "mlp.shared_experts.down_proj.weight"),
    {0},
};

static const struct hrt_hf_family families[] = {
    {"deepseek_v2", shared_experts, false},
    {"deepseek_v3", shared_experts, true},
    {"dots1", shared_experts, false},
    {"mixtral", mixtral, false},
    {"olmoe", NULL, false},
    {"qwen2_moe", NULL, false},
    {"qwen3_moe", NULL, false},
};

const struct hrt_hf_family *hrt_hf_family_of(const struct hrt_program *program) {
    const char *name = "";
    for (int i = 0; i < program->settings; i++) {
        if (strcmp(program->setting[i].key, "names.hf.family") == 0)
            name = program->setting[i].value;
    }
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

const struct hrt_hf_rule *hrt_hf_rule_of(const struct hrt_hf_family *family,
                                         const struct hrt_param *param) {
    const struct hrt_hf_rule *const lists[] = {family->own, common};
    for (int i = 0; i < 2; i++) {
        for (const struct hrt_hf_rule *rule = lists[i]; rule && rule->ours; rule++) {
            if (matches(rule->ours, param->path)) return rule;
        }
    }
    return NULL;
}

// ---- shapes

static struct hrt_hf_view turned(const struct hrt_param *param, bool last_is_out) {
    const int64_t size = hrt_param_size(param);
    const int64_t out =
        last_is_out ? param->shape[param->rank - 1] : size / (size ? param->shape[0] : 1);
    const int64_t in = out ? size / out : 0;
    return (struct hrt_hf_view){
        .rank = 2, .shape = {out, in}, .rows = out, .columns = in, .turned = true};
}

struct hrt_hf_view hrt_hf_view_of(const struct hrt_program *program,
                                  const struct hrt_tensor *tensor, const struct hrt_hf_rule *rule,
                                  bool fused) {
    const struct hrt_param *param = tensor->param;
    struct hrt_hf_view view = {.rows = 1, .columns = hrt_param_size(param), .rank = param->rank};
    switch (rule->form) {
    case HRT_HF_SAME:
        for (int i = 0; i < param->rank; i++) view.shape[i] = param->shape[i];
        break;
    case HRT_HF_VECTOR:
        view.rank = 1;
        view.shape[0] = view.columns;
        break;
    case HRT_HF_ROW:
        view.rank = 2;
        view.shape[0] = 1;
        view.shape[1] = view.columns;
        break;
    case HRT_HF_TURNED:
    case HRT_HF_TURNED_IN:
        view = turned(param, rule->form == HRT_HF_TURNED_IN);
        break;
    }
    if (!fused) return view;
    view.rank = 3;
    view.shape[0] = program->set[param->set].experts;
    view.shape[1] = rule->parts * view.rows;
    view.shape[2] = view.columns;
    view.first = (tensor->expert * rule->parts + rule->part) * view.rows * view.columns;
    return view;
}
