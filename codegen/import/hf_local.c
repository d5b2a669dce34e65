// Attention in chunks, with layers between that see everything: the keys of config.json, and the block.
#include <inttypes.h>
#include <string.h>

#include "codegen/import/hf_model.h"

bool hec_hf_is_local(const struct hec_hf_model *m, int64_t layer) {
    if (!m->local.layers) return (layer + 1) % m->local.global_every != 0;
    return json_integer_value(json_array_get(m->local.layers, (size_t)layer)) != 0;
}

// An empty list is none.
static void read_layers(struct hec_hf_config *config, struct hec_hf_model *model) {
    static const char key[] = "no_rope_layers";
    json_t *layers = hec_hf_list(config, key);
    model->local.global_every = hec_hf_count(config, "no_rope_layer_interval", 0);
    if (json_array_size(layers) == 0) return;
    if ((int64_t)json_array_size(layers) != model->layers)
        hec_hf_refuse(config, key, "must have one for each layer");
    for (size_t i = 0; i < json_array_size(layers); i++) {
        const json_t *value = json_array_get(layers, i);
        if (json_is_integer(value) && (json_integer_value(value) | 1) == 1) continue;
        hec_hf_refuse(config, key, "may hold 1, a layer with rope, and 0, one without");
        return;
    }
    model->local.layers = layers;
}

// They follow from the other keys.
static void check_types(struct hec_hf_config *config, const struct hec_hf_model *model) {
    json_t *types = hec_hf_list(config, "layer_types");
    if (!types || !config->sound) return;
    for (int64_t i = 0; i < model->layers; i++) {
        const char *type = json_string_value(json_array_get(types, (size_t)i));
        const bool chunked = model->local.chunk && hec_hf_is_local(model, i);
        if (type && strcmp(type, chunked ? "chunked_attention" : "full_attention") == 0) continue;
        hec_hf_refuse(config, "layer_types",
                      "must be chunked_attention for layers with rope, full_attention for others");
        return;
    }
}

void hec_hf_read_local(struct hec_hf_config *config, struct hec_hf_model *model) {
    struct hec_hf_local *local = &model->local;
    if (hec_hf_has(config, "attention_chunk_size"))
        local->chunk = hec_hf_count(config, "attention_chunk_size", 0);
    model->interleaved = true;
    read_layers(config, model);
    check_types(config, model);
    const int64_t floor = hec_hf_count(config, "floor_scale", 0);
    if (!hec_hf_flag(config, "attn_temperature_tuning", false)) return;
    local->floor = floor;
    if (model->positions >= floor)
        hec_hf_refuse(config, "floor_scale",
                      "must be more than the %" PRId64
                      " positions: not yet there is a factor of queries by position",
                      model->positions);
}

void hec_hf_write_local_dims(const struct hec_hf_model *m, struct hec_writer *out) {
    if (m->local.floor)
        hec_line(out,
                 "dim P = %" PRId64
                 " - T  # positions left until queries would need a factor, which is not yet there",
                 m->local.floor);
    hec_line(out, "let chunk = 0  # see all, know no positions; calls of attention set it");
}

static const char *rotated(const struct hec_hf_model *m, const char *scaling, char of,
                           struct hec_writer *out) {
    const char *turned =
        hec_arena_format(out->arena, "rope(%c, theta = theta%s, interleaved = true)", of, scaling);
    if (m->norm == HEC_HF_NO_NORM) return turned;
    return hec_arena_format(out->arena, "rmsnorm(%s, eps = eps, gain = none)", turned);
}

void hec_hf_write_local(const struct hec_hf_model *m, const char *scaling, struct hec_writer *out) {
    static const char names[] = "qk";
    hec_open(out, "if chunk > 0 {");
    for (int i = 0; i < 2; i++)
        hec_line(out, "%c = %s", names[i], rotated(m, scaling, names[i], out));
    hec_close(out, "}");
}
