// How the tensors of families lie: the rules that they share, and the words of their files (families/*.def).
#include "runtime/store/hf_rules.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum { PATH = 512 };

// ---- paths of ours, and the beginning of names there

#define LAYER "model.layers.{}."
#define ROUTER "layers.{}.*.router"
#define SELECT_BIAS "layers.{}.*.select_bias"
#define EXPERTS "layers.{}.*.experts.{e}."
#define SHARED "layers.{}.*.shared."
#define DENSE "layers.{}.*."
#define MTP "mtp."

// ---- one tensor of ours in one there

#define ONE(path, theirs, how)                                                                     \
    {                                                                                              \
        .ours = path, .layout = { {.name = theirs, .form = how} }                                  \
    }
#define SAME(path, theirs) ONE(path, theirs, HRT_HF_SAME)
#define VECTOR(path, theirs) ONE(path, theirs, HRT_HF_VECTOR)
#define ROW(path, theirs) ONE(path, theirs, HRT_HF_ROW)
#define TURNED(path, theirs) ONE(path, theirs, HRT_HF_TURNED)
#define TURNED_IN(path, theirs) ONE(path, theirs, HRT_HF_TURNED_IN)
#define PART_TURNED(path, theirs, which, of)                                                       \
    {                                                                                              \
        .ours = path, .layout = {                                                                  \
            {.name = theirs, .form = HRT_HF_TURNED, .part = which, .parts = of}                    \
        }                                                                                          \
    }
// Tensors whose names begin so are passed over.
#define PASSED(there)                                                                              \
    {                                                                                              \
        .ours = HRT_HF_PASSED, .layout = { {.name = there} }                                       \
    }
// The text model alone, out of a model that also reads images, says this in its config.json.
#define ALONE(json)                                                                                \
    {                                                                                              \
        .ours = HRT_HF_ALONE, .layout = { {.name = json} }                                         \
    }
// Queries, keys and values behind one another.
#define PART_OF_QKV(path, theirs, how, which)                                                      \
    {                                                                                              \
        .ours = "layers.{}.attention." path, .layout = {                                           \
            {.name = theirs,                                                                       \
             .form = how,                                                                          \
             .part = which,                                                                        \
             .parts = 3,                                                                           \
             .joined = how == HRT_HF_VECTOR ? "bq bk bv" : "wq wk wv"}                             \
        }                                                                                          \
    }
#define QKV(there)                                                                                 \
    PART_OF_QKV("wq", there ".weight", HRT_HF_TURNED, 0),                                          \
        PART_OF_QKV("wk", there ".weight", HRT_HF_TURNED, 1),                                      \
        PART_OF_QKV("wv", there ".weight", HRT_HF_TURNED, 2),                                      \
        PART_OF_QKV("bq", there ".bias", HRT_HF_VECTOR, 0),                                        \
        PART_OF_QKV("bk", there ".bias", HRT_HF_VECTOR, 1),                                        \
        PART_OF_QKV("bv", there ".bias", HRT_HF_VECTOR, 2)
#define GLU(path, there)                                                                           \
    TURNED(path "w1", there "gate_proj.weight"), TURNED(path "w3", there "up_proj.weight"),        \
        TURNED(path "w2", there "down_proj.weight")

// ---- experts

// All of a layer in one tensor: gate and up [E, 2 * F, D], or straight [E, D, 2 * F]; down [E, D, F], or [E, F, D].
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
        .ours = EXPERTS path, .layout = {                                                          \
            {.name = theirs, .form = HRT_HF_TURNED},                                               \
            ALL_GATE_UP(HRT_HF_TURNED, which),                                                     \
            ALL_GATE_UP(HRT_HF_STRAIGHT, which)                                                    \
        }                                                                                          \
    }
#define EXPERT_OUT(path, theirs)                                                                   \
    {                                                                                              \
        .ours = EXPERTS path, .layout = {                                                          \
            {.name = theirs, .form = HRT_HF_TURNED},                                               \
            ALL_DOWN(HRT_HF_TURNED),                                                               \
            ALL_DOWN(HRT_HF_STRAIGHT)                                                              \
        }                                                                                          \
    }
// One by one; folders of transformers' may have them together.
#define EXPERTS_ONE_BY_ONE(there, gate, up, down)                                                  \
    EXPERT_IN("w1", there gate ".weight", 0), EXPERT_IN("w3", there up ".weight", 1),              \
        EXPERT_OUT("w2", there down ".weight")

// Together, straight or turned: gates behind one another, and then up.
#define PART_OF_ALL(theirs, how, which, of)                                                        \
    .name = theirs, .form = how, .together = true, .part = which, .parts = of
#define STRAIGHT_OF_ALL(path, theirs, which, of)                                                   \
    {                                                                                              \
        .ours = EXPERTS path, .layout = {                                                          \
            {PART_OF_ALL(theirs, HRT_HF_STRAIGHT, which, of), .swapped = true}                     \
        }                                                                                          \
    }
#define TURNED_OF_ALL(path, theirs, which, of)                                                     \
    {                                                                                              \
        .ours = EXPERTS path, .layout = { {PART_OF_ALL(theirs, HRT_HF_TURNED, which, of)} }        \
    }
// Together in three matrices, rows of all experts behind one another, each of gate, up and down [E * F, D].
#define STACKED_OF_ALL(path, theirs, how)                                                          \
    {                                                                                              \
        .ours = EXPERTS path, .layout = {                                                          \
            {.name = theirs, .form = how, .together = true, .stacked = true}                       \
        }                                                                                          \
    }
#define EXPERTS_STACKED(gate, up, down)                                                            \
    STACKED_OF_ALL("w1", gate, HRT_HF_TURNED), STACKED_OF_ALL("w3", up, HRT_HF_TURNED),            \
        STACKED_OF_ALL("w2", down, HRT_HF_STRAIGHT)
#define EXPERTS_TURNED(in, out)                                                                    \
    TURNED_OF_ALL("w1", in, 0, 2), TURNED_OF_ALL("w3", in, 1, 2), TURNED_OF_ALL("w2", out, 0, 1)
#define EXPERTS_STRAIGHT(in, out)                                                                  \
    STRAIGHT_OF_ALL("w1", in, 0, 2), STRAIGHT_OF_ALL("w3", in, 1, 2),                              \
        STRAIGHT_OF_ALL("w2", out, 0, 1)

// Together, gate and up in turn, with biases: straight, or turned in MXFP4.
#define TURN_OF_ALL(path, theirs, which, of)                                                       \
    {                                                                                              \
        .ours = EXPERTS path, .layout = {                                                          \
            {PART_OF_ALL(theirs, HRT_HF_STRAIGHT, which, of), .interleaved = true},                \
            {PART_OF_ALL(theirs "_blocks", HRT_HF_TURNED, which, of), .interleaved = true,         \
             .scales = theirs "_scales"}                                                           \
        }                                                                                          \
    }
#define BIAS_OF_ALL(path, theirs, which, of)                                                       \
    {                                                                                              \
        .ours = EXPERTS path, .layout = {                                                          \
            {PART_OF_ALL(theirs "_bias", HRT_HF_VECTOR, which, of), .interleaved = true}           \
        }                                                                                          \
    }
#define EXPERTS_IN_TURN(in, out)                                                                   \
    TURN_OF_ALL("w1", in, 0, 2), TURN_OF_ALL("w3", in, 1, 2), TURN_OF_ALL("w2", out, 0, 1),        \
        BIAS_OF_ALL("b1", in, 0, 2), BIAS_OF_ALL("b3", in, 1, 2), BIAS_OF_ALL("b2", out, 0, 1)

// ---- the layer that predicts a token more; its other parameters are called as those of `layers.{}`

#define PREDICTOR                                                                                  \
    TURNED(MTP "eh_proj", LAYER "eh_proj.weight"), VECTOR(MTP "enorm", LAYER "enorm.weight"),      \
        VECTOR(MTP "hnorm", LAYER "hnorm.weight"),                                                 \
        VECTOR(MTP "norm", LAYER "shared_head.norm.weight")

// Its copies of what it shares with the model; the last of a model whose embedding is its head.
const struct hrt_hf_rule hrt_store_hf_copies[HRT_HF_COPIES] = {
    SAME("embed", LAYER "embed_tokens.weight"),
    TURNED("head", LAYER "shared_head.head.weight"),
    SAME("embed", LAYER "shared_head.head.weight"),
};

// ---- rules

// Those that all families share. The first rule that fits counts; a family's own come before.
static const struct hrt_hf_rule common[] = {
    SAME("embed", "model.embed_tokens.weight"),
    TURNED("head", "lm_head.weight"),
    VECTOR("norm", "model.norm.weight"),
    VECTOR("layers.{}.attention_norm", LAYER "input_layernorm.weight"),
    TURNED("layers.{}.attention.wq", LAYER "self_attn.q_proj.weight"),
    TURNED("layers.{}.attention.wk", LAYER "self_attn.k_proj.weight"),
    TURNED("layers.{}.attention.wv", LAYER "self_attn.v_proj.weight"),
    TURNED_IN("layers.{}.attention.wo", LAYER "self_attn.o_proj.weight"),
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
    TURNED(ROUTER, LAYER "mlp.gate.weight"),
    VECTOR(SELECT_BIAS, LAYER "mlp.gate.e_score_correction_bias"),
    EXPERTS_ONE_BY_ONE(LAYER "mlp.experts.{e}.", "gate_proj", "up_proj", "down_proj"),
    GLU(SHARED, LAYER "mlp.shared_expert."),
    ROW("layers.{}.*.shared_gate", LAYER "mlp.shared_expert_gate.weight"),
    GLU(DENSE, LAYER "mlp."),
    {0},
};

#define FACTS(...)
#define KEYS(...)
#define RULES(...)                                                                                 \
    (const struct hrt_hf_rule[]) {                                                                 \
        __VA_ARGS__, {                                                                             \
            0                                                                                      \
        }                                                                                          \
    }
#define NO_RULES NULL
#define HRT_HF_FAMILY(name_, facts, keys, rules) {.name = #name_, .own = rules},
#define HRT_HF_LIKE(name_, other, ...) {.name = #name_, .like = #other},

static const struct hrt_hf_family families[] = {
#include "runtime/store/hf_families.def"
};

const struct hrt_hf_family *hrt_store_hf_family_named(const char *name) {
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        if (strcmp(families[i].name, name) == 0) return &families[i];
    }
    return NULL;
}

// The lists that count for a family, the first one first: its own, those of what it is like, the common ones. NULL:
// there is none. `at` is from 0 to LISTS - 1.
enum { LISTS = 4 };
static const struct hrt_hf_rule *list_of(const struct hrt_hf_family *family, int at) {
    if (at == LISTS - 1) return common;
    for (; family && at > 0; at--)
        family = family->like ? hrt_store_hf_family_named(family->like) : NULL;
    return family ? family->own : NULL;
}

// Only the last star is tried again: earlier ones, which pass no dot either, could but begin it later.
static bool matches(const char *pattern, const char *text) {
    const char *star = NULL, *from = NULL;
    while (*text) {
        if (*pattern == '*') {
            star = ++pattern;
            from = text;
        } else if (*pattern == *text) {
            pattern++;
            text++;
        } else if (star && *from != '.') {
            text = ++from;
            pattern = star;
        } else {
            return false;
        }
    }
    while (*pattern == '*') pattern++;
    return !*pattern;
}

bool hrt_store_hf_is_predictor(const char *path) {
    return strncmp(path, MTP, strlen(MTP)) == 0;
}

static const struct hrt_hf_rule *find_in(const struct hrt_hf_rule *list, const char *path) {
    for (; list && list->ours; list++) {
        if (matches(list->ours, path)) return list;
    }
    return NULL;
}

// By the family's own lists; with the common one, too.
static const struct hrt_hf_rule *find_rule(const struct hrt_hf_family *family, const char *path,
                                           bool all) {
    const struct hrt_hf_rule *rule = NULL;
    for (int i = 0; !rule && i < LISTS - !all; i++) rule = find_in(list_of(family, i), path);
    return rule;
}

bool hrt_store_hf_may_predict(const struct hrt_hf_family *family) {
    return find_rule(family, MTP "eh_proj", false) != NULL;
}

const char *hrt_store_hf_alone(const struct hrt_hf_family *family) {
    const struct hrt_hf_rule *rule = find_rule(family, HRT_HF_ALONE, false);
    return rule ? rule->layout[0].name : NULL;
}

const struct hrt_hf_rule *hrt_store_hf_rule_of(const struct hrt_hf_family *family,
                                               const char *path) {
    const bool predicts = hrt_store_hf_may_predict(family) && hrt_store_hf_is_predictor(path);
    char layer[PATH] = "";
    if (predicts) snprintf(layer, sizeof layer, "layers.{}.%s", path + strlen(MTP));
    const struct hrt_hf_rule *rule = predicts ? find_rule(family, path, false) : NULL;
    return rule ? rule : find_rule(family, predicts ? layer : path, true);
}

const struct hrt_hf_rule *hrt_store_hf_next_rule(const struct hrt_hf_family *family,
                                                 const struct hrt_hf_rule *rule) {
    bool passed = !rule;
    if (rule && rule[1].ours) return rule + 1;
    for (int i = 0; i < LISTS; i++) {
        const struct hrt_hf_rule *list = list_of(family, i);
        if (list && passed) return list;
        while (list && list->ours && list != rule) list++;
        passed |= list && list->ours;
    }
    return NULL;
}
