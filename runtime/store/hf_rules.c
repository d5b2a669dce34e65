// The families, and how their tensors lie.
#include "runtime/store/hf_rules.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum { PATH = 512 };

#define LAYER "model.layers.{}."
#define EXPERTS LAYER "mlp.experts."
#define ONE(path, theirs, how)                                                                     \
    {                                                                                              \
        .ours = path, .layout = { {.name = theirs, .form = how} }                                  \
    }
#define SAME(path, theirs) ONE(path, theirs, HRT_HF_SAME)
#define VECTOR(path, theirs) ONE(path, theirs, HRT_HF_VECTOR)
#define TURNED(path, theirs) ONE(path, theirs, HRT_HF_TURNED)

// All experts of a layer in one tensor: gate and up [E, 2 * F, D], or straight [E, D, 2 * F]; down [E, D, F], or [E, F,
// D].
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

// Rules that all families share. The first rule that fits counts.
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
    // Latent attention:
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
    VECTOR("layers.{}.*.select_bias", LAYER "block_sparse_moe.e_score_correction_bias"),
    EXPERT_IN("w1", EXPERTS "{e}.w1.weight", 0),
    EXPERT_IN("w3", EXPERTS "{e}.w3.weight", 1),
    EXPERT_OUT("w2", EXPERTS "{e}.w2.weight"),
    {0},
};

// The layer that predicts a token more; its other parameters are called as those of `layers.{}`.
#define PREDICTOR "mtp."
static const struct hrt_hf_rule predictor[] = {
    TURNED(PREDICTOR "eh_proj", LAYER "eh_proj.weight"),
    VECTOR(PREDICTOR "enorm", LAYER "enorm.weight"),
    VECTOR(PREDICTOR "hnorm", LAYER "hnorm.weight"),
    VECTOR(PREDICTOR "norm", LAYER "shared_head.norm.weight"),
    {0},
};

// Its copies of what it shares with the model; the last of a model whose embedding is its head.
const struct hrt_hf_rule hrt_store_hf_copies[HRT_HF_COPIES] = {
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

// One tensor for all experts of a layer, gate and up in turn: straight, or turned in MXFP4.
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

// One tensor for all experts of a layer, gates behind one another, and then up: straight.
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

const struct hrt_hf_family *hrt_store_hf_family_named(const char *name) {
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

bool hrt_store_hf_is_predictor(const char *path) {
    return strncmp(path, PREDICTOR, strlen(PREDICTOR)) == 0;
}

static const struct hrt_hf_rule *find_rule(const struct hrt_hf_rule *list, const char *path) {
    for (; list && list->ours; list++) {
        if (matches(list->ours, path)) return list;
    }
    return NULL;
}

const struct hrt_hf_rule *hrt_store_hf_rule_of(const struct hrt_hf_family *family,
                                               const char *path) {
    const bool predicts = family->predictors && hrt_store_hf_is_predictor(path);
    char layer[PATH] = "";
    if (predicts) snprintf(layer, sizeof layer, "layers.{}.%s", path + strlen(PREDICTOR));
    const char *as_layer = predicts ? layer : path;
    const struct hrt_hf_rule *rule = find_rule(family->own, as_layer);
    if (!rule && predicts) rule = find_rule(predictor, path);
    return rule ? rule : find_rule(common, as_layer);
}

const struct hrt_hf_rule *hrt_store_hf_next_rule(const struct hrt_hf_family *family,
                                                 const struct hrt_hf_rule *rule) {
    const struct hrt_hf_rule *next = rule ? rule + 1 : family->own ? family->own : common;
    if (next->ours) return next;
    const bool was_common = next >= common && next < common + sizeof common / sizeof *common;
    return was_common ? NULL : common;
}
