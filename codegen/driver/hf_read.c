// From config.json to a model: families differ by the keys that they have and by a row of a table.
#include <assert.h>
#include <math.h>
#include <string.h>

#include "codegen/driver/hf_model.h"

static const char *const glm4_needs[] = {"num_key_value_heads", "n_shared_experts",
                                         "norm_topk_prob", "first_k_dense_replace", NULL};
static const char *const deepseek_v2_needs[] = {"q_lora_rank", "n_shared_experts", "topk_method",
                                                NULL};
static const char *const gpt_oss_needs[] = {"head_dim",       "num_key_value_heads", "layer_types",
                                            "sliding_window", "num_local_experts",   NULL};
static const char *const llama4_needs[] = {"head_dim", "num_key_value_heads", NULL};
static const char *const deepseek_v3_needs[] = {
    "q_lora_rank",           "n_shared_experts",      "n_group", "topk_group", "norm_topk_prob",
    "routed_scaling_factor", "first_k_dense_replace", NULL};

// What a family does that its config.json does not say.
static const struct family {
    const char *name;
    enum hec_hf_norm norm;
    const char *norm_flag;    // A key: whether there are such norms. NULL: there are.
    bool norm_standard;       // Where there is no such key.
    const char *expert_width; // Keys.
    const char *dense_width;  // NULL: intermediate_size.
    const char *bias;         // Of what makes queries, keys and values.
    bool bias_standard, bias_out;
    bool window_by_flag; // A window counts where use_sliding_window says so.
    // Where layers are not named all have it; or those from max_window_layers on; or versions of transformers differ.
    enum { ALL_LAYERS, LAST_LAYERS, NAMED_LAYERS } windows;
    enum { BY_FLAG, ALWAYS, NEVER } renormalized;
    bool sigmoid;  // With a selection bias, unless
    bool on_input; // weights multiply what experts get; then there is one shared expert.
    bool local;    // Attention (hf_local.c).
    bool aux;      // The loss that output_router_logits asks for.
    bool latent;
    bool predictors; // Its folders may have a layer that predicts a token after the next one.
    // The values of scoring_func and topk_method; NULL: there are no such keys.
    const char *score, *method;
    bool greedy;              // Another topk_method: no groups.
    const char *const *needs; // Keys whose default is not ours, so that they must be there.
    double theta;             // Of rope; 0: the usual one.
    bool scaled;              // Rope's scaling must be there.
    bool sinks, clamped;
    double eps;
    double partial; // The default of partial_rotary_factor; 0: it must be 1.
} families[] = {
    {"mixtral", .expert_width = "intermediate_size", .renormalized = ALWAYS, .aux = true,
     .eps = 1e-5},
    {"olmoe", .norm = HEC_HF_NORM_ALL, .expert_width = "intermediate_size",
     .bias = "attention_bias", .bias_out = true, .aux = true, .eps = 1e-5},
    {"qwen2_moe", .expert_width = "moe_intermediate_size", .bias = "qkv_bias",
     .bias_standard = true, .window_by_flag = true, .windows = NAMED_LAYERS, .aux = true,
     .eps = 1e-6},
    {"qwen3_moe", .norm = HEC_HF_NORM_HEADS, .expert_width = "moe_intermediate_size",
     .bias = "attention_bias", .bias_out = true, .window_by_flag = true, .aux = true, .eps = 1e-6},
    {"dots1", .norm = HEC_HF_NORM_HEADS, .expert_width = "moe_intermediate_size",
     .bias = "attention_bias", .bias_out = true, .sigmoid = true, .windows = LAST_LAYERS,
     .eps = 1e-6},
    {"deepseek_v2", .expert_width = "moe_intermediate_size", .bias = "attention_bias",
     .bias_out = true, .renormalized = NEVER, .latent = true, .score = "softmax",
     .method = "group_limited_greedy", .greedy = true, .needs = deepseek_v2_needs, .eps = 1e-6},
    {"deepseek_v3", .expert_width = "moe_intermediate_size", .bias = "attention_bias",
     .bias_out = true, .sigmoid = true, .latent = true, .score = "sigmoid", .method = "noaux_tc",
     .predictors = true, .needs = deepseek_v3_needs, .eps = 1e-6},
    {"glm4_moe", .norm = HEC_HF_NORM_HEADS, .norm_flag = "use_qk_norm",
     .expert_width = "moe_intermediate_size", .bias = "attention_bias", .sigmoid = true,
     .score = "sigmoid", .method = "noaux_tc", .predictors = true, .needs = glm4_needs, .eps = 1e-5,
     .partial = 0.5},
    {"gpt_oss", .expert_width = "intermediate_size", .bias = "attention_bias",
     .bias_standard = true, .bias_out = true, .renormalized = ALWAYS, .aux = true,
     .needs = gpt_oss_needs, .theta = 150000, .scaled = true, .sinks = true, .clamped = true,
     .eps = 1e-5},
    {"llama4_text", .norm = HEC_HF_NORM_PLAIN, .norm_flag = "use_qk_norm", .norm_standard = true,
     .expert_width = "intermediate_size", .dense_width = "intermediate_size_mlp",
     .bias = "attention_bias", .bias_out = true, .renormalized = NEVER, .sigmoid = true,
     .on_input = true, .local = true, .needs = llama4_needs, .theta = 500000, .eps = 1e-5},
};
enum { FAMILIES = sizeof families / sizeof *families, POSITIONS_MOST = 4096 };

// Each family whose weights are known has its row.
#define HRT_HF_FAMILY(...) +1
static_assert(FAMILIES ==
#include "runtime/hf/families.def"
              , "a family has no row");

// What changes nothing that a program computes.
static const char *const harmless[] = {"_name_or_path",
                                       "architectures",
                                       "auto_map",
                                       "aux_loss_alpha",
                                       "bos_token_id",
                                       "chunk_size_feed_forward",
                                       "eos_token_id",
                                       "ep_size",
                                       "id2label",
                                       "initial_context_length",
                                       "initializer_range",
                                       "intermediate_size",
                                       "intermediate_size_mlp",
                                       "label2id",
                                       "layer_types",
                                       "max_window_layers",
                                       "output_attentions",
                                       "pad_token_id",
                                       "pretraining_tp",
                                       "quantization_config",
                                       "return_dict",
                                       "router_aux_loss_coef",
                                       "sep_token_id",
                                       "seq_aux",
                                       "sliding_window",
                                       "torch_dtype",
                                       "transformers_version",
                                       "use_cache",
                                       NULL};

// Of a model that also reads images, the text model.
static const char *read_type(struct hec_hf_config *config) {
    const char *name = hec_hf_text(config, "model_type", NULL);
    if (!name || strcmp(name, "llama4") != 0) return name;
    return hec_hf_descend(config, "text_config") ? hec_hf_text(config, "model_type", NULL) : NULL;
}

static const struct family *find_family(struct hec_hf_config *config) {
    const char *name = read_type(config), *all = "";
    for (int i = 0; name && i < FAMILIES; i++) {
        if (strcmp(families[i].name, name) == 0) return &families[i];
        const char *between = i == 0 ? "" : i == FAMILIES - 1 ? " and " : ", ";
        all = hec_arena_format(config->arena, "%s%s%s", all, between, families[i].name);
    }
    if (name) hec_hf_refuse(config, "model_type", "is not yet known; %s are", all);
    return NULL;
}

static void check_needs(struct hec_hf_config *config, const struct family *family) {
    for (int i = 0; family->needs && family->needs[i]; i++) hec_hf_need(config, family->needs[i]);
}

// ---- rope

// YaRN's factor of what is scaled `factor` times.
static double mscale_of(double factor, double by) {
    return factor > 1 ? 0.1 * by * log(factor) + 1 : 1;
}

static double read_mscale(struct hec_hf_config *config, const char *key) {
    const double by = hec_hf_number(config, key, 0);
    if (by >= 0 && by <= 100) return by;
    hec_hf_refuse(config, key, "must be from 0 to 100");
    return 0;
}

static const char *read_yarn(struct hec_hf_config *config, double factor) {
    const double ramp[] = {hec_hf_number(config, "beta_fast", 32),
                           hec_hf_number(config, "beta_slow", 1)};
    const int64_t original = hec_hf_count(config, "original_max_position_embeddings", 0);
    const bool truncate = hec_hf_flag(config, "truncate", true);
    const double by = read_mscale(config, "mscale"), all = read_mscale(config, "mscale_all_dim");
    const double usual =
        by > 0 && all > 0 ? mscale_of(factor, by) / mscale_of(factor, all) : mscale_of(factor, 1);
    const double attention = hec_hf_number(config, "attention_factor", usual);
    return hec_arena_format(config->arena,
                            "yarn(%.15g, original = %lld, fast = %.15g, slow = %.15g, truncate = "
                            "%s, attention = %.15g)",
                            factor, (long long)original, ramp[0], ramp[1],
                            truncate ? "true" : "false", attention);
}

static const char *read_llama3(struct hec_hf_config *config, double factor) {
    static const char *const keys[] = {"low_freq_factor", "high_freq_factor",
                                       "original_max_position_embeddings"};
    for (int i = 0; i < 3; i++) hec_hf_need(config, keys[i]);
    const double low = hec_hf_number(config, keys[0], 1), high = hec_hf_number(config, keys[1], 4);
    if (!(low > 0)) hec_hf_refuse(config, keys[0], "must be above 0");
    if (!(high >= low)) hec_hf_refuse(config, keys[1], "must not be less than low_freq_factor");
    return hec_arena_format(config->arena,
                            "llama3(%.15g, original = %lld, low = %.15g, high = %.15g)", factor,
                            (long long)hec_hf_count(config, keys[2], 1), low, high);
}

// Of the object that config is in, as all that follows.
static void read_theta(struct hec_hf_config *config, const struct family *family,
                       struct hec_hf_model *model) {
    model->theta = hec_hf_number(config, "rope_theta", model->theta);
    if (!(model->theta > 0)) hec_hf_refuse(config, "rope_theta", "must be above 0");
    model->partial = hec_hf_number(config, "partial_rotary_factor", model->partial);
    if (!family->partial && model->partial != 1)
        hec_hf_refuse(config, "partial_rotary_factor", "must be 1 in this family");
    else if (!(model->partial > 0 && model->partial <= 1))
        hec_hf_refuse(config, "partial_rotary_factor", "must be above 0 and at most 1");
}

static void read_scaling(struct hec_hf_config *config, const struct family *family,
                         struct hec_hf_model *model) {
    const char *key = hec_hf_has(config, "rope_type") ? "rope_type" : "type";
    const char *type = hec_hf_text(config, key, "default");
    read_theta(config, family, model);
    if (strcmp(type, "default") == 0) return;
    const double factor = hec_hf_number(config, "factor", 1);
    if (!(factor >= 1))
        hec_hf_refuse(config, "factor", "must be at least 1");
    else if (strcmp(type, "linear") == 0)
        model->scaling = hec_arena_format(config->arena, "linear(%.15g)", factor);
    else if (strcmp(type, "yarn") == 0)
        model->scaling = read_yarn(config, factor);
    else if (strcmp(type, "llama3") == 0)
        model->scaling = read_llama3(config, factor);
    else
        hec_hf_refuse(config, key, "is not yet known; default, linear, yarn and llama3 are");
    if (model->latent.rank)
        model->latent.mscale = mscale_of(factor, read_mscale(config, "mscale_all_dim"));
}

static void read_rope(struct hec_hf_config *config, const struct family *family,
                      struct hec_hf_model *model) {
    static const char *const section[] = {"rope_parameters", "rope_scaling"};
    model->theta = family->theta > 0 ? family->theta : 10000;
    model->partial = family->partial ? family->partial : 1;
    read_theta(config, family, model);
    if (family->scaled && !hec_hf_has(config, section[1])) hec_hf_need(config, section[0]);
    for (int i = 0; i < 2; i++) {
        if (!hec_hf_enter(config, section[i])) continue;
        read_scaling(config, family, model);
        hec_hf_leave(config);
    }
    model->rotated = (int64_t)((double)model->head_width * model->partial);
    if (config->sound && !family->latent && (model->rotated < 2 || model->rotated % 2))
        hec_hf_refuse(config, "num_attention_heads",
                      "leaves heads of which no even part is rotated");
}

// ---- attention

// Which layers have the window.
static void read_layer_types(struct hec_hf_config *config, const struct family *family,
                             struct hec_hf_model *model) {
    json_t *types = model->layer_types = hec_hf_list(config, "layer_types");
    if (!types && family->windows == LAST_LAYERS)
        model->window_from = hec_hf_count(config, "max_window_layers", model->layers);
    if (!types && family->windows == NAMED_LAYERS)
        hec_hf_refuse(config, "use_sliding_window", "needs layer_types: the layers that have it");
    if (types && (int64_t)json_array_size(types) != model->layers)
        hec_hf_refuse(config, "layer_types", "must have one for each layer");
    for (size_t i = 0; i < json_array_size(types); i++) {
        const char *type = json_string_value(json_array_get(types, i));
        const bool known =
            type && (strcmp(type, HEC_HF_WINDOWED) == 0 || strcmp(type, "full_attention") == 0);
        if (known) continue;
        hec_hf_refuse(config, "layer_types", "may hold full_attention and " HEC_HF_WINDOWED);
        return;
    }
}

static void read_window(struct hec_hf_config *config, const struct family *family,
                        struct hec_hf_model *model) {
    if (family->window_by_flag && !hec_hf_flag(config, "use_sliding_window", false)) return;
    if (!hec_hf_has(config, "sliding_window")) return;
    model->window = hec_hf_count(config, "sliding_window", 0);
    read_layer_types(config, family, model);
}

static void read_heads(struct hec_hf_config *config, struct hec_hf_model *model) {
    model->groups = hec_hf_count(config, "num_key_value_heads", model->heads);
    if (model->heads % model->groups)
        hec_hf_refuse(config, "num_key_value_heads", "must divide num_attention_heads");
    const int64_t even = model->width / model->heads;
    model->head_width = hec_hf_count(config, "head_dim", even ? even : 1);
    if (model->head_width < 2 || model->head_width % 2)
        hec_hf_refuse(config, "num_attention_heads", "leaves heads of no even width");
}

static void read_attention(struct hec_hf_config *config, const struct family *family,
                           struct hec_hf_model *model) {
    model->heads = hec_hf_count(config, "num_attention_heads", 0);
    if (family->latent)
        hec_hf_read_latent(config, model);
    else
        read_heads(config, model);
    if (!family->norm_flag || hec_hf_flag(config, family->norm_flag, family->norm_standard))
        model->norm = family->norm;
    if (family->bias) model->bias_qkv = hec_hf_flag(config, family->bias, family->bias_standard);
    model->bias_out = family->bias_out && model->bias_qkv;
    model->clip = hec_hf_number(config, "clip_qkv", 0);
    if (model->clip < 0) hec_hf_refuse(config, "clip_qkv", "must not be negative");
    if (hec_hf_number(config, "attention_dropout", 0) != 0)
        hec_hf_refuse(config, "attention_dropout", "must be 0: attention has no dropout");
    if (family->local)
        hec_hf_read_local(config, model);
    else
        read_window(config, family, model);
    read_rope(config, family, model);
    model->sinks = family->sinks;
}

// ---- experts

static void read_groups(struct hec_hf_config *config, struct hec_hf_model *model) {
    model->expert_groups = hec_hf_count(config, "n_group", 1);
    model->topk_groups = hec_hf_count(config, "topk_group", 1);
    if (model->experts % model->expert_groups)
        hec_hf_refuse(config, "n_group", "must divide the experts");
    if (model->topk_groups > model->expert_groups)
        hec_hf_refuse(config, "topk_group", "is more than there are groups");
    else if (model->topk > model->experts / model->expert_groups * model->topk_groups)
        hec_hf_refuse(config, "topk_group", "has too few experts for num_experts_per_tok");
}

// Whether experts are chosen from groups; there may be keys that say how.
static bool has_groups(struct hec_hf_config *config, const struct family *family) {
    if (!family->method) return true;
    if (strcmp(hec_hf_text(config, "scoring_func", family->score), family->score) != 0)
        hec_hf_refuse(config, "scoring_func", "must be %s", family->score);
    const char *method = hec_hf_text(config, "topk_method", family->method);
    if (strcmp(method, family->method) == 0) return true;
    if (!family->greedy || strcmp(method, "greedy") != 0)
        hec_hf_refuse(config, "topk_method", "must be %s%s", family->greedy ? "greedy or " : "",
                      family->method);
    hec_hf_has(config, "n_group"); // As if they were not there.
    hec_hf_has(config, "topk_group");
    return false;
}

static void read_weights(struct hec_hf_config *config, const struct family *family,
                         struct hec_hf_model *model) {
    const bool flag = hec_hf_flag(config, "norm_topk_prob", false);
    model->renormalized = family->renormalized == ALWAYS || flag;
    if (flag && family->renormalized == NEVER)
        hec_hf_refuse(config, "norm_topk_prob", "must be false: what it does is not settled");
    model->scale = hec_hf_number(config, "routed_scaling_factor", 1);
    if (!(model->scale > 0)) hec_hf_refuse(config, "routed_scaling_factor", "must be above 0");
}

static void read_router(struct hec_hf_config *config, const struct family *family,
                        struct hec_hf_model *model) {
    const char *key = hec_hf_has(config, "num_local_experts")  ? "num_local_experts"
                      : hec_hf_has(config, "n_routed_experts") ? "n_routed_experts"
                                                               : "num_experts";
    model->experts = hec_hf_count(config, key, 0);
    model->topk = hec_hf_count(config, "num_experts_per_tok", 0);
    if (hec_hf_count(config, "experts_per_token", model->topk) != model->topk)
        hec_hf_refuse(config, "experts_per_token", "must be num_experts_per_tok");
    if (model->topk > model->experts)
        hec_hf_refuse(config, "num_experts_per_tok", "is more than there are experts");
    read_weights(config, family, model);
    model->jitter = hec_hf_number(config, "router_jitter_noise", 0);
    if (!(model->jitter >= 0 && model->jitter < 1))
        hec_hf_refuse(config, "router_jitter_noise", "must be at least 0 and less than 1");
    if (family->on_input && model->jitter > 0)
        hec_hf_refuse(config, "router_jitter_noise", "must be 0: transformers does not look at it");
    model->sigmoid = family->sigmoid;
    model->select_bias = family->sigmoid && !family->on_input;
    model->on_input = family->on_input;
    if (has_groups(config, family)) read_groups(config, model);
    // Without the flag transformers adds no such loss.
    if (hec_hf_flag(config, "output_router_logits", false) && family->aux)
        model->aux = hec_hf_number(config, "router_aux_loss_coef", 0.001);
    if (model->aux < 0) hec_hf_refuse(config, "router_aux_loss_coef", "must not be negative");
}

static void read_shared(struct hec_hf_config *config, struct hec_hf_model *model) {
    if (model->on_input) model->shared_width = model->expert_width;
    model->shared_gate = strcmp(model->family, "qwen2_moe") == 0;
    if (model->shared_gate)
        model->shared_width = hec_hf_count(config, "shared_expert_intermediate_size", 0);
    else if (hec_hf_has(config, "n_shared_experts"))
        model->shared_width = model->expert_width * hec_hf_count(config, "n_shared_experts", 0);
}

// Of layers by their numbers only those of a step: that is every so many-th one.
static void read_sparse_layers(struct hec_hf_config *config, struct hec_hf_model *model) {
    static const char key[] = "moe_layers";
    json_t *layers = hec_hf_list(config, key);
    if (!layers) return;
    const json_int_t first = json_integer_value(json_array_get(layers, 0));
    model->sparse_step = first >= 0 && first < model->layers ? first + 1 : 1;
    bool steps = (int64_t)json_array_size(layers) == model->layers / model->sparse_step;
    for (size_t i = 0; i < json_array_size(layers); i++) {
        const json_t *layer = json_array_get(layers, i);
        steps = steps && json_is_integer(layer) &&
                json_integer_value(layer) == model->sparse_step * (int64_t)(i + 1) - 1;
    }
    if (!steps)
        hec_hf_refuse(config, key, "must be every so many-th layer: the others are not yet there");
}

static void read_dense_layers(struct hec_hf_config *config, const struct family *family,
                              struct hec_hf_model *model) {
    const char *step = family->local ? "interleave_moe_layer_step" : "decoder_sparse_step";
    model->sparse_step = hec_hf_count(config, step, 1);
    if (family->local) read_sparse_layers(config, model);
    model->dense_layers = hec_hf_list(config, "mlp_only_layers");
    for (size_t i = 0; i < json_array_size(model->dense_layers); i++) {
        const json_t *layer = json_array_get(model->dense_layers, i);
        const json_int_t number = json_integer_value(layer);
        if (json_is_integer(layer) && number >= 0 && number < model->layers) continue;
        hec_hf_refuse(config, "mlp_only_layers", "must hold numbers of layers");
        return;
    }
    const double first = hec_hf_number(config, "first_k_dense_replace", 0);
    model->dense_first = first >= 0 && first <= (double)model->layers ? (int64_t)first : -1;
    if (first != (double)model->dense_first)
        hec_hf_refuse(config, "first_k_dense_replace", "must be a number of layers");
    if (hec_hf_count(config, "moe_layer_freq", 1) != 1)
        hec_hf_refuse(config, "moe_layer_freq", "must be 1");
    if (model->sparse_step > 1 || model->dense_first > 0 ||
        json_array_size(model->dense_layers) > 0)
        model->dense_width = hec_hf_count(
            config, family->dense_width ? family->dense_width : "intermediate_size", 0);
}

static void read_act(struct hec_hf_config *config, struct hec_hf_model *model) {
    static const char *const known[][2] = {{"silu", "silu"},
                                           {"swish", "silu"},
                                           {"gelu", "gelu_erf"},
                                           {"gelu_new", "gelu"},
                                           {"gelu_pytorch_tanh", "gelu"},
                                           {"relu", "relu"}};
    const char *act = hec_hf_text(config, "hidden_act", "silu");
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(known[i][0], act) == 0) model->act = known[i][1];
    }
    if (!model->act)
        hec_hf_refuse(config, "hidden_act", "is not known; silu, gelu, gelu_new and relu are");
}

static void read_clamps(struct hec_hf_config *config, struct hec_hf_model *model) {
    model->limit = hec_hf_number(config, "swiglu_limit", 7);
    model->alpha = hec_hf_number(config, "swiglu_alpha", 1.702);
    if (!(model->limit > 0)) hec_hf_refuse(config, "swiglu_limit", "must be above 0");
    if (!(model->alpha > 0)) hec_hf_refuse(config, "swiglu_alpha", "must be above 0");
}

static void read_predictor(struct hec_hf_config *config, struct hec_hf_model *model) {
    const double layers = hec_hf_number(config, "num_nextn_predict_layers", 0);
    if (layers != 0 && layers != 1)
        hec_hf_refuse(config, "num_nextn_predict_layers",
                      "must be 0 or 1: what a second one takes from the first is not settled");
    model->predictor = layers == 1;
}

static const char *read_dtype(struct hec_hf_config *config, const char *usual) {
    return hec_hf_text(config, hec_hf_has(config, "dtype") ? "dtype" : "torch_dtype", usual);
}

bool hec_hf_read_model(struct hec_hf_config *config, struct hec_hf_model *model) {
    const char *dtype = read_dtype(config, ""); // Of the file, should its text model not say.
    const struct family *family = find_family(config);
    if (!family) return false;
    *model = (struct hec_hf_model){.family = family->name};
    model->vocabulary = hec_hf_count(config, "vocab_size", 0);
    model->width = hec_hf_count(config, "hidden_size", 0);
    model->layers = hec_hf_count(config, "num_hidden_layers", 0);
    model->positions = hec_hf_count(config, "max_position_embeddings", POSITIONS_MOST);
    if (model->positions > POSITIONS_MOST) model->positions = POSITIONS_MOST;
    check_needs(config, family);
    if (!config->sound) return false; // The rest is made of these.
    read_attention(config, family, model);
    model->eps = hec_hf_number(config, "rms_norm_eps", family->eps);
    if (!(model->eps > 0)) hec_hf_refuse(config, "rms_norm_eps", "must be above 0");
    model->tied = hec_hf_flag(config, "tie_word_embeddings", false);
    if (!*dtype && hec_hf_has(config, "quantization_config")) dtype = "bfloat16";
    model->bf16 = strcmp(read_dtype(config, dtype), "bfloat16") == 0;
    read_act(config, model);
    read_router(config, family, model);
    model->expert_width = hec_hf_count(config, family->expert_width, 0);
    if (family->clamped) read_clamps(config, model);
    read_shared(config, model);
    read_dense_layers(config, family, model);
    if (family->predictors) read_predictor(config, model);
    if (config->sound) hec_hf_warn_unread(config, harmless);
    return config->sound;
}
