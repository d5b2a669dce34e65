// The words of families' files about config.json. A key has its default in transformers; one whose default has changed,
// or that says how large a model is, must be there.
#include "codegen/import/hf_families.h"

#include <string.h>

#define NONE "null" // Nothing stands for it.
#define MUST(key)                                                                                  \
    { .name = key } // Be there.
#define USUAL(key, text)                                                                           \
    { .name = key, .absent = text } // Null is as if it were not there.

#define CALLED(key, usual, text)                                                                   \
    { .name = key, .as = usual, .absent = text } // By another name than in most families.
#define FIXED(usual, text)                                                                         \
    { .name = usual, .absent = text, .fixed = true } // The file cannot say it.
#define ONLY(key, text, reason)                                                                    \
    { .name = key, .absent = text, .only = text, .why = reason } // Any other value is refused.

#define INSIDE(object, key, usual, text)                                                           \
    { .name = key, .in = object, .as = usual, .absent = text } // A key of an object in the file.

// The keys of all families. The last lines change nothing that a program computes.
#define COMMON MUST("num_experts_per_tok"), BASE
#define BASE USUAL("hidden_act", "\"silu\""), BASE_WITHOUT_ACT
#define BASE_WITHOUT_ACT                                                                           \
    MUST("model_type"), MUST("vocab_size"), MUST("hidden_size"), MUST("num_hidden_layers"),        \
        MUST("num_attention_heads"), USUAL("max_position_embeddings", NONE),                       \
        USUAL("tie_word_embeddings", "false"), USUAL("attention_dropout", "0"),                    \
        USUAL("dtype", NONE), USUAL("torch_dtype", NONE), USUAL("quantization_config", NONE),      \
        USUAL("per_layer_config", NONE), USUAL("rope_parameters", NONE),                           \
        USUAL("rope_scaling", NONE), USUAL("original_max_position_embeddings", NONE),              \
        USUAL("output_router_logits", "false"), USUAL("_name_or_path", NONE),                      \
        USUAL("architectures", NONE), USUAL("auto_map", NONE), USUAL("bos_token_id", NONE),        \
        USUAL("chunk_size_feed_forward", NONE), USUAL("eos_token_id", NONE),                       \
        USUAL("id2label", NONE), USUAL("initializer_range", NONE), USUAL("label2id", NONE),        \
        USUAL("output_attentions", NONE), USUAL("output_hidden_states", NONE),                     \
        USUAL("pad_token_id", NONE), USUAL("return_dict", NONE), USUAL("sep_token_id", NONE),      \
        USUAL("transformers_version", NONE), USUAL("use_cache", NONE)

#define ROPE(theta) USUAL("rope_theta", theta), USUAL("partial_rotary_factor", NONE)
#define AUX(weight) USUAL("router_aux_loss_coef", weight)
#define GROUPED_HEADS(count)                                                                       \
    {.name = "num_key_value_heads", .absent = count, .null = NONE}, USUAL("head_dim", NONE)
#define SPARSE_STEPS USUAL("decoder_sparse_step", "1"), USUAL("mlp_only_layers", NONE)
// Keys of DeepSeek's own code; transformers reads none of them.
#define DEEPSEEK_TRAINING                                                                          \
    USUAL("aux_loss_alpha", NONE), USUAL("ep_size", NONE), USUAL("pretraining_tp", NONE),          \
        USUAL("seq_aux", NONE), USUAL("moe_layer_freq", "1")
#define LATENT                                                                                     \
    {.name = "q_lora_rank", .null = NONE}, MUST("kv_lora_rank"), MUST("qk_nope_head_dim"),         \
        MUST("qk_rope_head_dim"), MUST("v_head_dim"), USUAL("num_key_value_heads", NONE),          \
        USUAL("head_dim", NONE), USUAL("qk_head_dim", NONE)
#define GLM_MIXTURE                                                                                \
    USUAL("intermediate_size", NONE), MUST("moe_intermediate_size"),                               \
        USUAL("n_routed_experts", NONE), USUAL("num_local_experts", NONE),                         \
        MUST("n_shared_experts"), USUAL("topk_method", "\"noaux_tc\""),                            \
        USUAL("scoring_func", "\"sigmoid\""), USUAL("n_group", "1"), USUAL("topk_group", "1")
#define END                                                                                        \
    { 0 }

#define KEYS(...)                                                                                  \
    (const struct hec_hf_key[]) {                                                                  \
        __VA_ARGS__, END                                                                           \
    }
#define FACTS(...) __VA_ARGS__
#define HRT_HF_FAMILY(name_, facts, keys_, rules) {.name = #name_, .keys = keys_, facts},
#define HRT_HF_LIKE(name_, other, ...) {.name = #name_, .like = #other, __VA_ARGS__},

static const struct hec_hf_family families[] = {
#include "runtime/store/hf_families.def"
};
enum { FAMILIES = sizeof families / sizeof *families };

const struct hec_hf_family *hec_hf_next_family(const struct hec_hf_family *family) {
    const struct hec_hf_family *next = family ? family + 1 : families;
    return next < families + FAMILIES ? next : NULL;
}

const struct hec_hf_family *hec_hf_family_of(const char *name) {
    const struct hec_hf_family *family = NULL;
    while ((family = hec_hf_next_family(family)) && strcmp(family->name, name) != 0) continue;
    return family && family->like ? hec_hf_family_of(family->like) : family;
}
