// The config, and the modules that have adapters.
#include "runtime/store/peft.h"

#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/json.h"
#include "runtime/base/text.h"
#include "runtime/params/merge.h"
#include "runtime/store/checkpoint_part.h"
#include "runtime/store/hf_names.h"

static const char weight_end[] = ".weight";

// ---- reading

// Keys that change the computation, and have this meaning only when they are missing, null, false or empty.
static const char *const refused[] = {"use_dora",
                                      "use_rslora",
                                      "fan_in_fan_out",
                                      "rank_pattern",
                                      "alpha_pattern",
                                      "modules_to_save",
                                      "lora_bias",
                                      "layer_replication",
                                      "trainable_token_indices",
                                      "alora_invocation_tokens",
                                      "use_qalora"};

static bool is_nothing(const json_t *value) {
    return !value || json_is_null(value) || json_is_false(value) ||
           (json_is_object(value) && json_object_size(value) == 0) ||
           (json_is_array(value) && json_array_size(value) == 0);
}

static bool check_number(const json_t *config, const char *key, const struct hrt_program *program,
                         const char *setting, const char *path, struct hrt_error *error) {
    const json_t *value = json_object_get(config, key);
    const char *own = hrt_program_setting(program, setting);
    if (json_is_number(value) && own && json_number_value(value) == strtod(own, NULL)) return true;
    return hrt_fail(error, "'%s': %s is %g, and %s of this program is %s", path, key,
                    json_is_number(value) ? json_number_value(value) : NAN, setting,
                    own ? own : "none");
}

static bool check_config(const json_t *config, const char *path, const struct hrt_program *program,
                         struct hrt_error *error) {
    const char *type = json_string_value(json_object_get(config, "peft_type"));
    const char *bias = json_string_value(json_object_get(config, "bias"));
    if (!type || strcmp(type, "LORA") != 0)
        return hrt_fail(error, "'%s': peft_type is %.40s; only LORA can be read", path,
                        type ? type : "missing");
    if (bias && strcmp(bias, "none") != 0)
        return hrt_fail(error, "'%s': bias is %.40s; only none can be read", path, bias);
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        if (is_nothing(json_object_get(config, refused[i]))) continue;
        return hrt_fail(error, "'%s': %s is set; such adapters cannot be read", path, refused[i]);
    }
    if (!is_nothing(json_object_get(config, "target_parameters")) && !hrt_store_hf_fuses(program))
        return hrt_fail(error,
                        "'%s': target_parameters is set: it has adapters of tensors with all "
                        "experts; a program with adapt.experts = fused reads them",
                        path);
    return check_number(config, "r", program, "adapt.rank", path, error) &&
           check_number(config, "lora_alpha", program, "adapt.alpha", path, error);
}

bool hrt_store_peft_check(const char *folder, const struct hrt_program *program,
                          struct hrt_error *error) {
    char path[PATH_MAX];
    if (!hrt_store_part_path(path, folder, HRT_PEFT_CONFIG, error)) return false;
    json_t *config = hrt_base_json_read(path, error);
    const bool sound = config && check_config(config, path, program, error);
    json_decref(config);
    return sound;
}

// ---- writing

// The module of a tensor of ours, "model.layers.0.self_attn.q_proj"; false: it is the weight of none.
static bool module_of(const struct hrt_program *program, const struct hrt_hf_family *family,
                      const struct hrt_tensor *tensor, char name[HRT_PATH_MAX]) {
    const struct hrt_hf_rule *rule = hrt_store_hf_rule_of(family, tensor->param->path);
    if (!rule || tensor->param->lora || rule->layout[0].form == HRT_HF_VECTOR) return false;
    if (hrt_store_hf_fused(program, family, tensor->param)) return false; // It is in no module.
    hrt_store_hf_name(program, tensor, rule->layout[0].name, name);
    if (!hrt_base_ends_with(name, weight_end)) return false;
    name[strlen(name) - strlen(weight_end)] = '\0';
    return true;
}

static const char *last_of(const char *name) {
    const char *dot = strrchr(name, '.');
    return dot ? dot + 1 : name;
}

static bool has_adapter(const struct hrt_program *program, const struct hrt_param *weight) {
    for (int i = 0; i < program->params; i++) {
        if (program->param[i].lora && hrt_params_adapted(program, &program->param[i]) == weight)
            return true;
    }
    return false;
}

// The last words of modules' names where all modules of that word have adapters, else the names. NULL: out of memory.
static json_t *targets_of(const struct hrt_program *program, const struct hrt_hf_family *family) {
    json_t *modules = json_array(), *without = json_object(), *known = json_object();
    bool *adapted = calloc((size_t)program->params + 1, sizeof *adapted);
    char name[HRT_PATH_MAX];
    for (int i = 0; adapted && i < program->params; i++)
        adapted[i] = has_adapter(program, &program->param[i]);
    struct hrt_tensor tensor = {0};
    while (adapted && hrt_params_tensor_next(program, &tensor)) {
        if (!adapted[tensor.param - program->param] && module_of(program, family, &tensor, name))
            json_object_set_new(without, last_of(name), json_true());
    }
    tensor = (struct hrt_tensor){0};
    while (adapted && hrt_params_tensor_next(program, &tensor)) {
        if (!adapted[tensor.param - program->param] || !module_of(program, family, &tensor, name))
            continue;
        const char *word = json_object_get(without, last_of(name)) ? name : last_of(name);
        if (json_object_get(known, word)) continue;
        json_object_set_new(known, word, json_true());
        json_array_append_new(modules, json_string(word));
    }
    json_decref(without);
    json_decref(known);
    free(adapted);
    return modules;
}

static bool is_known(const json_t *list, const char *name) {
    for (size_t i = 0; i < json_array_size(list); i++) {
        if (strcmp(json_string_value(json_array_get(list, i)), name) == 0) return true;
    }
    return false;
}

// The names of tensors with all experts that have adapters, each with its layer. NULL: out of memory.
static json_t *parameters_of(const struct hrt_program *program,
                             const struct hrt_hf_family *family) {
    json_t *names = json_array();
    char name[HRT_PATH_MAX];
    struct hrt_tensor tensor = {0};
    while (names && hrt_params_tensor_next(program, &tensor)) {
        if (tensor.expert > 0 || tensor.param->lora || !has_adapter(program, tensor.param))
            continue;
        const struct hrt_hf_layout *layout = hrt_store_hf_fused(program, family, tensor.param);
        if (!layout) continue;
        hrt_store_hf_name(program, &tensor, layout->name, name);
        if (!is_known(names, name)) json_array_append_new(names, json_string(name));
    }
    return names;
}

static bool fill_config(struct hrt_sink *sink, void *context) {
    char *text = json_dumps(context, JSON_INDENT(2));
    const bool written = text && hrt_params_sink_put(sink, text, strlen(text));
    if (!text) errno = ENOMEM;
    free(text);
    return written;
}

static json_t *number_of(const struct hrt_program *program, const char *setting) {
    const char *text = hrt_program_setting(program, setting);
    const double value = text ? strtod(text, NULL) : 0;
    return value == floor(value) ? json_integer((json_int_t)value) : json_real(value);
}

bool hrt_store_peft_write_config(const char *folder, const struct hrt_program *program,
                                 const struct hrt_hf_family *family, const char *base,
                                 struct hrt_error *error) {
    const char *dropout = hrt_program_setting(program, "adapt.dropout");
    struct hrt_part part = {.name = HRT_PEFT_CONFIG};
    json_t *config = json_pack(
        "{s:s s:s s:s? s:s s:o s:o s:f s:o s:o s:b s:b s:b s:b s:{} s:{} s:b}", "peft_type", "LORA",
        "task_type", "CAUSAL_LM", "base_model_name_or_path", base, "bias", "none", "r",
        number_of(program, "adapt.rank"), "lora_alpha", number_of(program, "adapt.alpha"),
        "lora_dropout", dropout ? strtod(dropout, NULL) : 0, "target_modules",
        targets_of(program, family), "target_parameters", parameters_of(program, family),
        "fan_in_fan_out", 0, "use_rslora", 0, "use_dora", 0, "lora_bias", 0, "rank_pattern",
        "alpha_pattern", "inference_mode", 1);
    if (!config) return hrt_fail(error, "out of memory");
    const bool written = hrt_store_part_write(folder, &part, fill_config, config, error);
    json_decref(config);
    return written;
}
