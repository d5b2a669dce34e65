// From the config.json of a model without experts to that of one with them.
#include <stdlib.h>
#include <string.h>

#include "tools/upcycle/upcycle.h"

#define MIXTRAL                                                                                    \
    .moe = "mixtral", .class = "MixtralForCausalLM", .experts = "num_local_experts",               \
    .width = "intermediate_size", .router = "block_sparse_moe.gate.weight",                        \
    .expert = "block_sparse_moe.experts.%lld.%s.weight", .part = {"w1", "w3", "w2"}

// Defaults differ between families (runtime/store/families), so those of the dense one are written.
static const struct family families[] = {
    {.dense = "llama",
     MIXTRAL,
     .usual = "{\"rms_norm_eps\": 1e-6, \"num_key_value_heads\": null}",
     .always = "{\"output_router_logits\": false, \"router_jitter_noise\": 0.0, "
               "\"sliding_window\": null}",
     .refused = {"attention_bias", "mlp_bias"},
     .dropped = {"attention_bias", "mlp_bias", "pretraining_tp"}},
    {.dense = "mistral",
     MIXTRAL,
     .usual = "{\"rms_norm_eps\": 1e-6, \"num_key_value_heads\": 8, \"sliding_window\": 4096}",
     .always = "{\"output_router_logits\": false, \"router_jitter_noise\": 0.0}"},
    {.dense = "qwen3",
     .moe = "qwen3_moe",
     .class = "Qwen3MoeForCausalLM",
     .experts = "num_experts",
     .width = "moe_intermediate_size",
     .router = "mlp.gate.weight",
     .expert = "mlp.experts.%lld.%s.weight",
     .part = {"gate_proj", "up_proj", "down_proj"},
     .usual = "{\"rms_norm_eps\": 1e-6, \"num_key_value_heads\": 32, \"head_dim\": 128}",
     .always = "{\"output_router_logits\": false, \"decoder_sparse_step\": 1, \"mlp_only_layers\": "
               "[], \"norm_topk_prob\": true, \"use_sliding_window\": false, \"sliding_window\": "
               "null}",
     .refused = {"use_sliding_window"},
     .dropped = {"layer_types", "max_window_layers"}}};
enum { FAMILIES = sizeof families / sizeof *families };

struct reading {
    const json_t *dense;
    const char *path;
    struct hrt_error *error;
};

static bool read_family(const struct reading *reading, const struct family **family) {
    const char *type = json_string_value(json_object_get(reading->dense, "model_type"));
    for (int i = 0; type && i < FAMILIES; i++) {
        *family = &families[i];
        if (strcmp(type, families[i].dense) == 0) return true;
    }
    return hrt_fail(reading->error,
                    "'%s': `model_type` is '%s'; llama, mistral and qwen3 get experts",
                    reading->path, type ? type : "");
}

// Whether the file says something other than null, false or an empty object.
static bool says(const struct reading *reading, const char *key) {
    const json_t *value = json_object_get(reading->dense, key);
    return value && !json_is_null(value) && !json_is_false(value) &&
           !(json_is_object(value) && json_object_size(value) == 0);
}

static bool refuse(const struct reading *reading, const char *key, const char *moe) {
    return hrt_fail(reading->error, "'%s': `%s` cannot be carried over: %s has nothing like it",
                    reading->path, key, moe);
}

static bool check_refused(const struct reading *reading, const struct family *family) {
    static const char *const all[] = {"quantization_config", "per_layer_config"};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (says(reading, all[i]))
            return hrt_fail(reading->error, "'%s': `%s` is not read here", reading->path, all[i]);
    }
    for (const char *const *key = family->refused; *key; key++) {
        if (says(reading, *key)) return refuse(reading, *key, family->moe);
    }
    if (strcmp(family->dense, "qwen3") != 0) return true;
    const json_t *types = json_object_get(reading->dense, "layer_types"), *type;
    size_t i;
    json_array_foreach(types, i, type) {
        const char *text = json_string_value(type);
        if (!text || strcmp(text, "full_attention") != 0)
            return refuse(reading, "layer_types", family->moe);
    }
    return true;
}

static bool read_size(const struct reading *reading, const char *key, int64_t *size) {
    const json_t *value = json_object_get(reading->dense, key);
    *size = json_integer_value(value);
    if (*size >= 1 && *size <= INT32_MAX) return true;
    return hrt_fail(reading->error, "'%s': `%s` must be a count, from 1 to 2^31 - 1", reading->path,
                    key);
}

// The angles' base where the file does not say it: 10000 in all dense families.
static void put_theta(json_t *config) {
    const json_t *rope = json_object_get(config, "rope_scaling");
    if (json_object_size(rope) == 0) rope = json_object_get(config, "rope_parameters");
    if (json_is_number(json_object_get(rope, "rope_theta")) ||
        json_is_number(json_object_get(config, "rope_theta")))
        return;
    json_object_set_new(config, "rope_theta", json_real(10000));
}

static void put_usual(json_t *config, const char *usual) {
    const char *key;
    json_t *values = json_loads(usual, 0, NULL), *value;
    json_object_foreach(values, key, value) {
        const json_t *said = json_object_get(config, key);
        const bool null =
            strcmp(key, "num_key_value_heads") == 0 || strcmp(key, "sliding_window") == 0;
        if (!said || (json_is_null(said) && !null)) json_object_set(config, key, value);
    }
    json_decref(values);
}

static json_t *make(const struct model *model, const struct options *options, const json_t *dense) {
    static const char *const other[] = {"auto_map", "num_experts", "num_local_experts"};
    const struct family *family = model->family;
    json_t *config = json_deep_copy(dense), *always = json_loads(family->always, 0, NULL);
    for (size_t i = 0; i < sizeof other / sizeof *other; i++) json_object_del(config, other[i]);
    for (const char *const *key = family->dropped; *key; key++) json_object_del(config, *key);
    put_usual(config, family->usual);
    put_theta(config);
    json_object_update(config, always);
    json_decref(always);
    json_object_set_new(config, "model_type", json_string(family->moe));
    json_object_set_new(config, "architectures", json_pack("[s]", family->class));
    json_object_set_new(config, family->experts, json_integer(options->experts));
    json_object_set_new(config, "num_experts_per_tok", json_integer(options->topk));
    json_object_set_new(config, family->width, json_integer(model->units / options->split));
    return config;
}

bool upcycle_config(struct model *model, const struct options *options, const json_t *dense,
                    const char *path, struct hrt_error *error) {
    const struct reading reading = {dense, path, error};
    *model = (struct model){.deviation = 0.02};
    if (!read_family(&reading, &model->family) || !check_refused(&reading, model->family) ||
        !read_size(&reading, "num_hidden_layers", &model->layers) ||
        !read_size(&reading, "hidden_size", &model->size) ||
        !read_size(&reading, "intermediate_size", &model->units))
        return false;
    if (model->units % options->split != 0)
        return hrt_fail(error, "'%s': `intermediate_size` %lld cannot be split in %lld parts", path,
                        (long long)model->units, (long long)options->split);
    const double deviation = json_number_value(json_object_get(dense, "initializer_range"));
    if (deviation > 0 && deviation < 1) model->deviation = deviation;
    model->config = make(model, options, dense);
    return model->config || hrt_fail(error, "out of memory");
}
