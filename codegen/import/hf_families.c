// Rows of families. A key has its default in transformers; one whose default has changed, or that says how large a
// model is, must be there.
#include "codegen/import/hf_families.h"

#include <assert.h>
#include <string.h>

#define NONE "null" // Nothing stands for it.
#define MUST(key)                                                                                  \
    { .name = key } // Be there.
#define USUAL(key, text)                                                                           \
    { .name = key, .absent = text } // Null is as if it were not there.

// The keys of all families. The last lines change nothing that a program computes.
#define COMMON                                                                                     \
    MUST("model_type"), MUST("vocab_size"), MUST("hidden_size"), MUST("num_hidden_layers"),        \
        MUST("num_attention_heads"), MUST("num_experts_per_tok"), USUAL("hidden_act", "\"silu\""), \
        USUAL("max_position_embeddings", NONE), USUAL("tie_word_embeddings", "false"),             \
        USUAL("attention_dropout", "0"), USUAL("dtype", NONE), USUAL("torch_dtype", NONE),         \
        USUAL("quantization_config", NONE), USUAL("per_layer_config", NONE),                       \
        USUAL("rope_parameters", NONE), USUAL("rope_scaling", NONE),                               \
        USUAL("original_max_position_embeddings", NONE), USUAL("output_router_logits", "false"),   \
        USUAL("_name_or_path", NONE), USUAL("architectures", NONE), USUAL("auto_map", NONE),       \
        USUAL("bos_token_id", NONE), USUAL("chunk_size_feed_forward", NONE),                       \
        USUAL("eos_token_id", NONE), USUAL("id2label", NONE), USUAL("initializer_range", NONE),    \
        USUAL("label2id", NONE), USUAL("output_attentions", NONE),                                 \
        USUAL("output_hidden_states", NONE), USUAL("pad_token_id", NONE),                          \
        USUAL("return_dict", NONE), USUAL("sep_token_id", NONE),                                   \
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

static const struct hec_hf_key mixtral[] = {COMMON,
                                            ROPE("1000000"),
                                            AUX("0.001"),
                                            GROUPED_HEADS("8"),
                                            MUST("intermediate_size"),
                                            USUAL("num_local_experts", NONE),
                                            USUAL("num_experts", NONE),
                                            USUAL("rms_norm_eps", "1e-5"),
                                            USUAL("router_jitter_noise", "0"),
                                            USUAL("sliding_window", NONE),
                                            END};

static const struct hec_hf_key olmoe[] = {COMMON,
                                          ROPE("10000"),
                                          AUX("0.01"),
                                          GROUPED_HEADS(NONE),
                                          MUST("intermediate_size"),
                                          USUAL("num_experts", NONE),
                                          USUAL("num_local_experts", NONE),
                                          USUAL("rms_norm_eps", "1e-5"),
                                          USUAL("norm_topk_prob", "false"),
                                          USUAL("attention_bias", "false"),
                                          USUAL("clip_qkv", NONE),
                                          END};

static const struct hec_hf_key qwen2_moe[] = {COMMON,
                                              ROPE("10000"),
                                              AUX("0.001"),
                                              GROUPED_HEADS("16"),
                                              SPARSE_STEPS,
                                              USUAL("intermediate_size", NONE),
                                              MUST("moe_intermediate_size"),
                                              MUST("shared_expert_intermediate_size"),
                                              USUAL("num_experts", NONE),
                                              USUAL("rms_norm_eps", "1e-6"),
                                              USUAL("norm_topk_prob", "false"),
                                              USUAL("qkv_bias", "true"),
                                              USUAL("use_sliding_window", "false"),
                                              USUAL("sliding_window", "4096"),
                                              USUAL("layer_types", NONE),
                                              USUAL("max_window_layers", NONE),
                                              END};

static const struct hec_hf_key qwen3_moe[] = {
    COMMON,
    ROPE("10000"),
    AUX("0.001"),
    GROUPED_HEADS("4"),
    SPARSE_STEPS,
    USUAL("intermediate_size", NONE),
    MUST("moe_intermediate_size"),
    USUAL("num_experts", NONE),
    USUAL("num_local_experts", NONE),
    USUAL("rms_norm_eps", "1e-6"),
    USUAL("norm_topk_prob", "false"),
    USUAL("attention_bias", "false"),
    USUAL("use_sliding_window", "false"),
    {.name = "sliding_window", .absent = "4096", .null = NONE},
    USUAL("max_window_layers", NONE), // All layers have the window, for any value.
    END};

static const struct hec_hf_key dots1[] = {
    COMMON,
    ROPE("10000"),
    AUX(NONE),
    GROUPED_HEADS("32"),
    DEEPSEEK_TRAINING,
    USUAL("intermediate_size", NONE),
    MUST("moe_intermediate_size"),
    USUAL("n_routed_experts", NONE),
    USUAL("num_local_experts", NONE),
    MUST("n_shared_experts"),
    USUAL("n_group", "1"),
    USUAL("topk_group", "1"),
    USUAL("first_k_dense_replace", "0"),
    USUAL("norm_topk_prob", "false"),
    USUAL("routed_scaling_factor", "1"),
    USUAL("scoring_func", NONE), // It is sigmoid.
    USUAL("topk_method", NONE),  // Groups, by the bias of selection.
    USUAL("rms_norm_eps", "1e-6"),
    USUAL("attention_bias", "false"),
    {.name = "sliding_window", .absent = "4096", .null = NONE},
    USUAL("max_window_layers", "62"),
    USUAL("layer_types", NONE),
    END};

static const struct hec_hf_key deepseek_v2[] = {COMMON,
                                                ROPE("10000"),
                                                AUX(NONE),
                                                LATENT,
                                                DEEPSEEK_TRAINING,
                                                USUAL("intermediate_size", NONE),
                                                MUST("moe_intermediate_size"),
                                                USUAL("n_routed_experts", NONE),
                                                USUAL("num_experts", NONE),
                                                MUST("n_shared_experts"),
                                                MUST("topk_method"),
                                                USUAL("scoring_func", "\"softmax\""),
                                                USUAL("n_group", "1"),
                                                USUAL("topk_group", "1"),
                                                USUAL("first_k_dense_replace", "0"),
                                                USUAL("norm_topk_prob", "false"),
                                                USUAL("routed_scaling_factor", "1"),
                                                USUAL("rms_norm_eps", "1e-6"),
                                                USUAL("attention_bias", "false"),
                                                USUAL("mlp_bias", "false"),
                                                END};

static const struct hec_hf_key deepseek_v3[] = {
    COMMON,
    ROPE("10000"),
    AUX(NONE),
    LATENT,
    DEEPSEEK_TRAINING,
    USUAL("intermediate_size", NONE),
    MUST("moe_intermediate_size"),
    USUAL("n_routed_experts", NONE),
    USUAL("num_local_experts", NONE),
    MUST("n_shared_experts"),
    USUAL("topk_method", "\"noaux_tc\""),
    USUAL("scoring_func", "\"sigmoid\""),
    MUST("n_group"),
    MUST("topk_group"),
    MUST("first_k_dense_replace"),
    {.name = "norm_topk_prob", .null = "false"},
    MUST("routed_scaling_factor"),
    {.name = "rope_interleave", .absent = "true", .null = "false"},
    USUAL("rms_norm_eps", "1e-6"),
    USUAL("attention_bias", "false"),
    USUAL("num_nextn_predict_layers", "0"),
    END};

static const struct hec_hf_key glm4_moe[] = {
    COMMON,
    USUAL("rope_theta", "10000"),
    {.name = "partial_rotary_factor", .absent = "0.5", .null = "1"},
    AUX(NONE),
    MUST("num_key_value_heads"),
    USUAL("head_dim", NONE),
    GLM_MIXTURE,
    MUST("first_k_dense_replace"),
    MUST("norm_topk_prob"),
    USUAL("routed_scaling_factor", "1"),
    USUAL("use_qk_norm", "false"),
    USUAL("rms_norm_eps", "1e-5"),
    USUAL("attention_bias", "false"),
    USUAL("num_nextn_predict_layers", "0"),
    END};

// GLM's layers with the attention of DeepSeek-V3.
static const struct hec_hf_key glm4_moe_lite[] = {
    COMMON,
    ROPE("10000"),
    AUX(NONE),
    LATENT,
    USUAL("pretraining_tp", NONE),
    GLM_MIXTURE,
    USUAL("first_k_dense_replace", "1"),
    USUAL("mlp_layer_types", NONE),
    {.name = "norm_topk_prob", .absent = "true", .null = "false"},
    MUST("routed_scaling_factor"),
    {.name = "rope_interleave", .absent = "true", .null = "false"},
    USUAL("rms_norm_eps", "1e-5"),
    USUAL("attention_bias", "false"),
    USUAL("num_nextn_predict_layers", "0"),
    END};

static const struct hec_hf_key solar_open[] = {
    COMMON,
    ROPE("1000000"),
    AUX(NONE),
    MUST("num_key_value_heads"),
    MUST("head_dim"),
    MUST("moe_intermediate_size"),
    USUAL("n_routed_experts", NONE),
    USUAL("num_local_experts", NONE),
    MUST("n_shared_experts"),
    USUAL("n_group", "1"),
    USUAL("topk_group", "1"),
    {.name = "norm_topk_prob", .absent = "true", .null = "false"},
    USUAL("routed_scaling_factor", "1"),
    USUAL("rms_norm_eps", "1e-5"),
    USUAL("attention_bias", "false"),
    END};

static const struct hec_hf_key minimax_m2[] = {
    COMMON,
    USUAL("rope_theta", "5000000"),
    {.name = "partial_rotary_factor", .absent = NONE, .null = "1"},
    USUAL("rotary_dim", NONE), // The elements of a head that rope rotates, where no factor says it.
    AUX(NONE),
    MUST("num_key_value_heads"),
    MUST("head_dim"),
    MUST("intermediate_size"),
    USUAL("num_local_experts", NONE),
    USUAL("num_experts", NONE),
    USUAL("rms_norm_eps", "1e-6"),
    USUAL("router_jitter_noise", "0"),
    END};

static const struct hec_hf_key gpt_oss[] = {COMMON,
                                            ROPE("150000"),
                                            AUX("0.001"),
                                            MUST("num_key_value_heads"),
                                            MUST("head_dim"),
                                            MUST("intermediate_size"),
                                            USUAL("num_local_experts", NONE),
                                            USUAL("num_experts", NONE),
                                            USUAL("experts_per_token", NONE),
                                            USUAL("swiglu_limit", "7"),
                                            USUAL("swiglu_alpha", "1.702"),
                                            USUAL("attention_bias", "true"),
                                            MUST("sliding_window"),
                                            MUST("layer_types"),
                                            USUAL("rms_norm_eps", "1e-5"),
                                            USUAL("initial_context_length", NONE),
                                            END};

static const struct hec_hf_key llama4_text[] = {
    COMMON,
    ROPE("500000"),
    AUX(NONE),
    MUST("num_key_value_heads"),
    MUST("head_dim"),
    MUST("intermediate_size"),
    USUAL("intermediate_size_mlp", NONE),
    USUAL("num_local_experts", NONE),
    USUAL("interleave_moe_layer_step", "1"),
    USUAL("moe_layers", NONE),
    USUAL("use_qk_norm", "true"),
    USUAL("attention_bias", "false"),
    {.name = "attention_chunk_size", .absent = "8192", .null = NONE},
    USUAL("no_rope_layers", NONE),
    USUAL("no_rope_layer_interval", "4"),
    USUAL("layer_types", NONE),
    USUAL("attn_temperature_tuning", "true"),
    USUAL("attn_scale", NONE), // Changes nothing below floor_scale positions.
    USUAL("floor_scale", "8192"),
    USUAL("router_jitter_noise", "0"),
    USUAL("rms_norm_eps", "1e-5"),
    END};

static const struct hec_hf_family families[] = {
    {"mixtral", mixtral, .aux = true, .experts = {"num_local_experts", "num_experts"},
     .expert_width = "intermediate_size", .renormalized = true},
    {"olmoe", olmoe, .aux = true, .experts = {"num_experts", "num_local_experts"},
     .expert_width = "intermediate_size", .norm = HEC_HF_NORM_ALL, .bias = "attention_bias",
     .bias_out = true},
    {"qwen2_moe", qwen2_moe, .aux = true, .experts = {"num_experts"},
     .expert_width = "moe_intermediate_size", .bias = "qkv_bias", .window_by_flag = true,
     .windows = HEC_HF_NAMED_LAYERS, .shared_gate = true},
    {"qwen3_moe", qwen3_moe, .aux = true, .experts = {"num_experts", "num_local_experts"},
     .expert_width = "moe_intermediate_size", .norm = HEC_HF_NORM_HEADS, .bias = "attention_bias",
     .bias_out = true, .window_by_flag = true},
    {"dots1", dots1, .experts = {"n_routed_experts", "num_local_experts"},
     .expert_width = "moe_intermediate_size", .norm = HEC_HF_NORM_HEADS, .bias = "attention_bias",
     .bias_out = true, .sigmoid = true, .windows = HEC_HF_LAST_LAYERS},
    {"deepseek_v2", deepseek_v2, .experts = {"n_routed_experts", "num_experts"},
     .expert_width = "moe_intermediate_size", .bias = "attention_bias", .bias_out = true,
     .latent = true, .score = "softmax", .method = "group_limited_greedy", .greedy = true},
    {"deepseek_v3", deepseek_v3, .experts = {"n_routed_experts", "num_local_experts"},
     .expert_width = "moe_intermediate_size", .bias = "attention_bias", .bias_out = true,
     .sigmoid = true, .latent = true, .score = "sigmoid", .method = "noaux_tc", .predictors = true},
    {"kimi_k2", deepseek_v3, .experts = {"n_routed_experts", "num_local_experts"},
     .expert_width = "moe_intermediate_size", .bias = "attention_bias", .bias_out = true,
     .sigmoid = true, .latent = true, .score = "sigmoid", .method = "noaux_tc", .predictors = true},
    {"glm4_moe", glm4_moe, .experts = {"n_routed_experts", "num_local_experts"},
     .expert_width = "moe_intermediate_size", .norm = HEC_HF_NORM_HEADS, .norm_flag = "use_qk_norm",
     .bias = "attention_bias", .sigmoid = true, .score = "sigmoid", .method = "noaux_tc",
     .predictors = true, .partial = true},
    {"glm4_moe_lite", glm4_moe_lite, .experts = {"n_routed_experts", "num_local_experts"},
     .expert_width = "moe_intermediate_size", .bias = "attention_bias", .bias_out = true,
     .sigmoid = true, .latent = true, .score = "sigmoid", .method = "noaux_tc", .predictors = true,
     .dense_one = true},
    {"solar_open", solar_open, .experts = {"n_routed_experts", "num_local_experts"},
     .expert_width = "moe_intermediate_size", .bias = "attention_bias", .sigmoid = true},
    {"minimax_m2", minimax_m2, .experts = {"num_local_experts", "num_experts"},
     .expert_width = "intermediate_size", .norm = HEC_HF_NORM_ALL, .renormalized = true,
     .sigmoid = true, .partial = true, .no_aux = true},
    {"gpt_oss", gpt_oss, .aux = true, .experts = {"num_local_experts", "num_experts"},
     .expert_width = "intermediate_size", .bias = "attention_bias", .bias_out = true,
     .renormalized = true, .scaled = true, .sinks = true, .clamped = true},
    {"llama4_text", llama4_text, .experts = {"num_local_experts"},
     .expert_width = "intermediate_size", .dense_width = "intermediate_size_mlp",
     .norm = HEC_HF_NORM_PLAIN, .norm_flag = "use_qk_norm", .bias = "attention_bias",
     .bias_out = true, .sigmoid = true, .on_input = true, .local = true},
};
enum { FAMILIES = sizeof families / sizeof *families };

// Each family whose weights are known has its row.
#define HRT_HF_FAMILY(...) +1
static_assert(FAMILIES ==
#include "runtime/store/hf_families.def"
              , "a family has no row");

const struct hec_hf_family *hec_hf_next_family(const struct hec_hf_family *family) {
    const struct hec_hf_family *next = family ? family + 1 : families;
    return next < families + FAMILIES ? next : NULL;
}

const struct hec_hf_family *hec_hf_family_of(const char *name) {
    const struct hec_hf_family *family = NULL;
    while ((family = hec_hf_next_family(family)) && strcmp(family->name, name) != 0) continue;
    return family;
}
