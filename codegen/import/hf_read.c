// From config.json to a model: families differ by the keys that they have and by a row of a table.
#include <math.h>
#include <string.h>

#include "codegen/import/hf_families.h"
#include "lang/base/str.h"

enum { POSITIONS_MOST = 4096, FAMILIES_MOST = 256, LAYERS_MOST = 1 << 16 };

// Enters the text model of a model that also reads images.
static const char *read_type(struct hec_hf_config *config) {
    const struct hec_hf_family *family = NULL;
    const char *name = hec_hf_text(config, "model_type", NULL);
    bool inside = false;
    while (name && !inside && (family = hec_hf_next_family(family)))
        inside = family->outer && strcmp(name, family->outer) == 0;
    if (!inside) return name;
    return hec_hf_descend(config, "text_config") ? hec_hf_text(config, "model_type", NULL) : NULL;
}

// "a, b and c".
static const char *family_names(struct hec_arena *arena) {
    const struct hec_hf_family *family = NULL, *next = hec_hf_next_family(NULL);
    const char *all = "";
    while ((family = next)) {
        next = hec_hf_next_family(family);
        all = hec_arena_format(arena, "%s%s%s", all,
                               !*all  ? ""
                               : next ? ", "
                                      : " and ",
                               family->name);
    }
    return all;
}

// "; qwen3_moe is the nearest", or nothing.
static const char *nearest_family(struct hec_arena *arena, const char *name) {
    const struct hec_hf_family *family = NULL;
    const char *names[FAMILIES_MOST];
    int count = 0;
    while (count < FAMILIES_MOST && (family = hec_hf_next_family(family)))
        names[count++] = family->name;
    const char *near = hec_closest(name, names, count);
    return near ? hec_arena_format(arena, "; %s is the nearest", near) : "";
}

static const struct hec_hf_family *find_family(struct hec_hf_config *config) {
    const char *name = read_type(config);
    const struct hec_hf_family *family = name ? hec_hf_family_of(name) : NULL;
    if (name && !family)
        hec_hf_refuse(config, "model_type", "is not yet known; %s are%s",
                      family_names(config->arena), nearest_family(config->arena, name));
    return family;
}

// ---- attention

// layer_types where each so many-th layer has no window.
static json_t *pattern_of(struct hec_hf_config *config, const struct hec_hf_model *model) {
    const int64_t every = hec_hf_count(config, "sliding_window_pattern", 0);
    json_t *types = hec_checked(json_array());
    for (int64_t i = 0; i < model->layers && i < LAYERS_MOST; i++) {
        const char *type = (i + 1) % every ? HEC_HF_WINDOWED : "full_attention";
        json_array_append_new(types, json_string(type));
    }
    json_object_set_new(config->standing, "layer_types", types);
    return types;
}

// Which layers have the window, if there is one.
static void read_layer_types(struct hec_hf_config *config, const struct hec_hf_family *family,
                             struct hec_hf_model *model) {
    json_t *types = model->layer_types = hec_hf_list(config, "layer_types");
    if (!types && family->windows == HEC_HF_LAST_LAYERS)
        model->window_from = hec_hf_count(config, "max_window_layers", model->layers);
    if (!types && family->windows == HEC_HF_NAMED_LAYERS && model->window)
        hec_hf_refuse(config, "use_sliding_window", "needs layer_types: the layers that have it");
    if (!types && family->windows == HEC_HF_PATTERN_OF_LAYERS)
        types = model->layer_types = pattern_of(config, model);
    if (types && (int64_t)json_array_size(types) != model->layers)
        hec_hf_refuse(config, "layer_types", "must have one for each layer");
    for (size_t i = 0; i < json_array_size(types); i++) {
        const char *type = json_string_value(json_array_get(types, i));
        const bool windowed = type && strcmp(type, HEC_HF_WINDOWED) == 0;
        if (windowed && model->window) continue;
        if (type && strcmp(type, "full_attention") == 0) continue;
        hec_hf_refuse(config, "layer_types",
                      windowed ? "names layers with a window, and there is none"
                               : "may hold full_attention and " HEC_HF_WINDOWED);
        return;
    }
    if (!types && model->window_from >= model->layers) model->window = 0;
}

static void read_window(struct hec_hf_config *config, const struct hec_hf_family *family,
                        struct hec_hf_model *model) {
    const bool may = !family->window_by_flag || hec_hf_flag(config, "use_sliding_window", false);
    if (may && hec_hf_has(config, "sliding_window"))
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

static void read_attention(struct hec_hf_config *config, const struct hec_hf_family *family,
                           struct hec_hf_model *model) {
    model->heads = hec_hf_count(config, "num_attention_heads", 0);
    if (family->latent)
        hec_hf_read_latent(config, model);
    else
        read_heads(config, model);
    if (!family->norm_flag || hec_hf_flag(config, family->norm_flag, false))
        model->norm = family->norm;
    if (family->bias) model->bias_qkv = hec_hf_flag(config, family->bias, false);
    model->bias_out = family->bias_out && model->bias_qkv;
    model->clip = hec_hf_number(config, "clip_qkv", 0);
    if (hec_hf_has(config, "clip_qkv") && !(model->clip > 0))
        hec_hf_refuse(config, "clip_qkv", "must be above 0");
    if (hec_hf_number(config, "attention_dropout", 0) != 0)
        hec_hf_refuse(config, "attention_dropout", "must be 0: attention has no dropout");
    if (family->local)
        hec_hf_read_local(config, model);
    else
        read_window(config, family, model);
    hec_hf_read_rope(config, family, model);
    model->sinks = family->sinks;
    model->gated = family->gated;
    model->norm_last = family->norm_last;
    model->interleaved |= family->interleaved;
    model->layer_norm = family->layer_norm && !hec_hf_has(config, "rms_norm_eps");
    model->zero_centered = family->zero_centered;
}

// Those of families that have such keys.
static double read_factor(struct hec_hf_config *config, const char *key, double otherwise) {
    const double factor = hec_hf_number(config, key, otherwise);
    if (hec_hf_has(config, key) && !(factor > 0)) hec_hf_refuse(config, key, "must be above 0");
    return factor;
}

static void read_factors(struct hec_hf_config *config, struct hec_hf_model *model) {
    const bool by_width = hec_hf_flag(config, "mup_enabled", false);
    const double scalar = read_factor(config, "query_pre_attn_scalar", 0);
    model->factors = (struct hec_hf_factors){
        .embedding =
            read_factor(config, "embedding_multiplier", by_width ? sqrt((double)model->width) : 1),
        .residual = read_factor(config, "residual_multiplier", 1),
        .scores = read_factor(config, "attention_multiplier", scalar > 0 ? 1 / sqrt(scalar) : 0),
        .logits = read_factor(config, "logits_scaling", 1) / read_factor(config, "logit_scale", 1),
        .cap_scores = read_factor(config, "attn_logit_softcapping", 0),
        .cap_logits = read_factor(config, "final_logit_softcapping", 0)};
}

// ---- experts

// Complains of a key that stands there.
static void read_groups(struct hec_hf_config *config, struct hec_hf_model *model) {
    const char *chosen = hec_hf_says(config, "topk_group") ? "topk_group" : "num_experts_per_tok";
    model->expert_groups = hec_hf_count(config, "n_group", 1);
    model->topk_groups = hec_hf_count(config, "topk_group", 1);
    if (model->experts % model->expert_groups)
        hec_hf_refuse(config, "n_group", "must divide the experts");
    else if (model->topk_groups > model->expert_groups)
        hec_hf_refuse(config, "topk_group", "is more than there are groups");
    else if (model->topk > model->experts / model->expert_groups * model->topk_groups)
        hec_hf_refuse(config, chosen,
                      chosen[0] == 't' ? "has too few experts for num_experts_per_tok"
                                       : "is more than one group of experts has");
}

// Whether experts are chosen from groups; there may be keys that say how.
static bool has_groups(struct hec_hf_config *config, const struct hec_hf_family *family) {
    if (!family->method) return true;
    if (strcmp(hec_hf_text(config, "scoring_func", family->score), family->score) != 0)
        hec_hf_refuse(config, "scoring_func", "must be %s", family->score);
    const char *method = hec_hf_text(config, "topk_method", family->method);
    if (strcmp(method, family->method) == 0) return true;
    if (!family->greedy || strcmp(method, "greedy") != 0)
        hec_hf_refuse(config, "topk_method", "must be %s%s", family->greedy ? "greedy or " : "",
                      family->method);
    return false;
}

static void read_weights(struct hec_hf_config *config, const struct hec_hf_family *family,
                         struct hec_hf_model *model) {
    const bool flag = hec_hf_flag(config, "norm_topk_prob", false);
    model->renormalized = family->renormalized || flag;
    if (flag && family->greedy)
        hec_hf_refuse(config, "norm_topk_prob", "must be false: its meaning is not settled");
    model->scale = hec_hf_number(config, "routed_scaling_factor", 1);
    if (!(model->scale > 0)) hec_hf_refuse(config, "routed_scaling_factor", "must be above 0");
}

// transformers takes one key for the other, and writes either.
static int64_t read_either(struct hec_hf_config *config, const char *const keys[2]) {
    const bool other = keys[1] && hec_hf_has(config, keys[1]);
    const int64_t count = hec_hf_count(config, keys[other && !hec_hf_has(config, keys[0])], 0);
    if (other && hec_hf_count(config, keys[1], 0) != count)
        hec_hf_refuse(config, keys[1], "must be %s", keys[0]);
    return count;
}

static void read_experts(struct hec_hf_config *config, const struct hec_hf_family *family,
                         struct hec_hf_model *model) {
    static const char *const usual[2] = {"num_experts_per_tok"};
    model->experts = read_either(config, family->experts);
    model->topk = read_either(config, family->topk[0] ? family->topk : usual);
    if (model->topk > model->experts)
        hec_hf_refuse(config, "num_experts_per_tok", "is more than there are experts");
    else if (has_groups(config, family))
        read_groups(config, model);
}

static bool scores_are_sigmoids(struct hec_hf_config *config) {
    static const char key[] = "expert_selection_fn", sigmoid[] = "sigmoid", softmax[] = "softmax";
    const char *fn = hec_hf_text(config, key, softmax);
    if (strcmp(fn, sigmoid) != 0 && strcmp(fn, softmax) != 0)
        hec_hf_refuse(config, key, "must be %s or %s", softmax, sigmoid);
    return strcmp(fn, sigmoid) == 0;
}

static void read_router(struct hec_hf_config *config, const struct hec_hf_family *family,
                        struct hec_hf_model *model) {
    read_experts(config, family, model);
    read_weights(config, family, model);
    model->jitter = hec_hf_number(config, "router_jitter_noise", 0);
    if (!(model->jitter >= 0 && model->jitter < 1))
        hec_hf_refuse(config, "router_jitter_noise", "must be at least 0 and less than 1");
    if (family->on_input && model->jitter > 0)
        hec_hf_refuse(config, "router_jitter_noise", "must be 0: transformers does not look at it");
    model->sigmoid = family->sigmoid || (family->fn_key && scores_are_sigmoids(config));
    model->softmax_of_topk = family->clamped || (family->fn_key && !model->sigmoid);
    model->select_bias = (family->sigmoid && !family->on_input) || family->select_bias;
    model->on_input = family->on_input;
    // Without the flag transformers adds no such loss.
    if (family->aux && hec_hf_flag(config, "output_router_logits", false))
        model->aux = hec_hf_number(config, "router_aux_loss_coef", 0);
    if (family->no_aux && hec_hf_flag(config, "output_router_logits", false))
        hec_hf_refuse(config, "output_router_logits",
                      "must be false: its loss is of other scores than the router's");
    if (model->aux < 0) hec_hf_refuse(config, "router_aux_loss_coef", "must not be negative");
}

static void read_shared(struct hec_hf_config *config, const struct hec_hf_family *family,
                        struct hec_hf_model *model) {
    if (family->shared_one) model->shared_width = model->expert_width;
    model->shared_gate = family->shared_gate;
    if (hec_hf_has(config, "shared_expert_intermediate_size"))
        model->shared_width = hec_hf_count(config, "shared_expert_intermediate_size", 0);
    else if (hec_hf_has(config, "n_shared_experts"))
        model->shared_width = model->expert_width * hec_hf_count(config, "n_shared_experts", 0);
    static const char key[] = "shared_expert_combination_strategy";
    const char *sum = hec_hf_text(config, key, "sum");
    if (strcmp(sum, "sum") != 0 && strcmp(sum, "average") != 0)
        hec_hf_refuse(config, key, "must be sum or average");
    model->averaged = model->shared_width && strcmp(sum, "average") == 0;
}

// Reads layers given by their numbers: only every n-th one is supported.
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

// How many layers in front are dense, given as one word for each layer.
static void read_layer_words(struct hec_hf_config *config, const struct hec_hf_family *family,
                             struct hec_hf_model *model) {
    static const char key[] = "mlp_layer_types", count[] = "first_k_dense_replace";
    json_t *words = hec_hf_list(config, key);
    const char *word[] = {"dense", "sparse"};
    int64_t dense = 0;
    bool sound = (int64_t)json_array_size(words) == model->layers;
    for (size_t i = 0; i < json_array_size(words); i++) {
        const char *own = json_string_value(json_array_get(words, i));
        const bool is_dense = own && strcmp(own, word[0]) == 0;
        sound = sound && own && (is_dense ? dense == (int64_t)i : strcmp(own, word[1]) == 0);
        dense += is_dense;
    }
    if (words && !sound)
        hec_hf_refuse(config, key,
                      "must have dense or sparse for each layer, the dense ones first");
    else if (words)
        model->dense_first = dense;
    if (words ? hec_hf_says(config, count) && hec_hf_number(config, count, 1) != (double)dense
              : family->dense_one && model->dense_first != 1)
        hec_hf_refuse(config, count, "must be the number of dense layers that %s has, or 1", key);
}

static void read_dense_layers(struct hec_hf_config *config, const struct hec_hf_family *family,
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
    read_layer_words(config, family, model);
    if (family->order == HEC_HF_BESIDE && model->dense_first > 0)
        hec_hf_refuse(config, "mlp_layer_types",
                      "must be sparse: not yet there is how others rotate");
    const double last = hec_hf_number(config, "moe_layer_end_index", -1);
    if (last != -1 && last < (double)model->layers - 1)
        hec_hf_refuse(config, "moe_layer_end_index", "must be -1 or the last layer");
    if (hec_hf_count(config, "moe_layer_freq", 1) != 1)
        hec_hf_refuse(config, "moe_layer_freq", "must be 1");
    if (model->sparse_step > 1 || model->dense_first > 0 ||
        json_array_size(model->dense_layers) > 0)
        model->dense_width = hec_hf_count(
            config, family->dense_width ? family->dense_width : "intermediate_size", 0);
}

static void read_act(struct hec_hf_config *config, const struct hec_hf_family *family,
                     struct hec_hf_model *model) {
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
    if (family->gelu_tanh && strcmp(act, "gelu") == 0) model->act = "gelu";
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
                      "must be 0 or 1: the input of a second one is not settled");
    model->predictor = layers == 1;
}

// A model that also reads images may say it beside its text model: then that counts.
static bool read_tied(struct hec_hf_config *config) {
    const json_t *outer = json_object_get(config->file, "tie_word_embeddings");
    const bool own = hec_hf_flag(config, "tie_word_embeddings", false);
    return config->root != config->file && json_is_boolean(outer) ? json_is_true(outer) : own;
}

static const char *read_dtype(struct hec_hf_config *config, const char *usual) {
    return hec_hf_text(config, hec_hf_has(config, "dtype") ? "dtype" : "torch_dtype", usual);
}

static void read_mixture(struct hec_hf_config *config, const struct hec_hf_family *family,
                         struct hec_hf_model *model) {
    read_router(config, family, model);
    model->expert_width = hec_hf_count(config, family->expert_width, 0);
    if (family->clamped) read_clamps(config, model);
    read_shared(config, family, model);
    read_dense_layers(config, family, model);
    read_predictor(config, model);
}

// Refuses models that Hecate lacks: layers that differ in more than experts and windows, biases of all GEMMs.
static void refuse_others(struct hec_hf_config *config, bool dense) {
    if (json_object_size(json_object_get(config->root, "per_layer_config")) > 0)
        hec_hf_refuse(config, "per_layer_config", "must be empty: layers have one config");
    if (hec_hf_flag(config, "mlp_bias", false))
        hec_hf_refuse(config, "mlp_bias", "must be false: %s have no biases",
                      dense ? "MLPs" : "experts");
}

// How the weights are stored, if programs can keep them so while they are frozen; NULL: they cannot.
static const char *read_packing(const struct hec_hf_config *config) {
    const json_t *quantized = json_object_get(config->root, "quantization_config");
    const char *method = json_string_value(json_object_get(quantized, "quant_method"));
    if (method && strcmp(method, "mxfp4") == 0) return "mxfp4";
    return method && strcmp(method, "fp8") == 0 ? "fp8" : NULL;
}

static const char *owner_of(const char *key) {
    const struct hec_hf_family *family = NULL;
    while ((family = hec_hf_next_family(family))) {
        for (const struct hec_hf_key *own = family->keys; own && own->name; own++) {
            if (strcmp(own->name, key) == 0) return family->name;
        }
    }
    return NULL;
}

bool hec_hf_read_model(struct hec_hf_config *config, struct hec_hf_model *model) {
    const char *dtype = read_dtype(config, ""); // The file's, should its text model not have one.
    const struct hec_hf_family *family = find_family(config);
    if (!family || !hec_hf_set_keys(config, family->keys)) return false;
    *model = (struct hec_hf_model){.family = hec_hf_text(config, "model_type", NULL)};
    model->vocabulary = hec_hf_count(config, "vocab_size", 0);
    model->width = hec_hf_count(config, "hidden_size", 0);
    model->layers = hec_hf_count(config, "num_hidden_layers", 0);
    model->positions = hec_hf_count(config, "max_position_embeddings", POSITIONS_MOST);
    if (model->positions > POSITIONS_MOST) model->positions = POSITIONS_MOST;
    if (!config->sound) return false; // The rest is made of these.
    refuse_others(config, family->dense);
    read_attention(config, family, model);
    read_factors(config, model);
    model->order = family->order;
    const char *eps = model->layer_norm ? "layer_norm_eps" : "rms_norm_eps";
    model->eps = hec_hf_number(config, eps, 0);
    if (!(model->eps > 0)) hec_hf_refuse(config, eps, "must be above 0");
    model->tied = read_tied(config);
    if (!*dtype && hec_hf_has(config, "quantization_config")) dtype = "bfloat16";
    model->bf16 = strcmp(read_dtype(config, dtype), "bfloat16") == 0;
    model->base = read_packing(config);
    read_act(config, family, model);
    if (family->dense)
        model->mlp_width = hec_hf_count(config, "intermediate_size", 0);
    else
        read_mixture(config, family, model);
    if (config->sound) hec_hf_warn_foreign(config, model->family, owner_of);
    return config->sound;
}
