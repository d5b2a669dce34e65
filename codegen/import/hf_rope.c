// Rope: how fast elements turn, and how their frequencies are scaled. The keys lie in an object of their own, in the
// root, or both.
#include <math.h>
#include <string.h>

#include "codegen/import/hf_families.h"

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

// The positions before scaling: the root's key counts first, as in transformers.
static int64_t read_original(struct hec_hf_config *config) {
    static const char key[] = "original_max_position_embeddings";
    const struct hec_hf_section section = config->section;
    hec_hf_leave(config);
    const int64_t most = hec_hf_count(config, "max_position_embeddings", 1);
    const bool without = !hec_hf_has(config, "max_position_embeddings");
    const int64_t given = hec_hf_has(config, key) ? hec_hf_count(config, key, 1) : 0;
    config->section = section;
    if (given) return given;
    return hec_hf_count(config, key, without ? 0 : most);
}

// The element that turns `turns` times in the original positions.
static double element_of(const struct hec_hf_model *model, double theta, double turns,
                         int64_t original) {
    const int64_t width = model->latent.rank ? model->latent.turned : model->rotated;
    return (double)width * log((double)original / (turns * 2 * M_PI)) / (2 * log(theta));
}

// Where what turns slowly ends before what turns fast begins, YaRN's own code does not do what the paper says.
static void check_ramp(struct hec_hf_config *config, const struct hec_hf_model *model, double theta,
                       const double beta[2], int64_t original, bool truncate) {
    const int64_t width = model->latent.rank ? model->latent.turned : model->rotated;
    double low = element_of(model, theta, beta[0], original);
    double high = element_of(model, theta, beta[1], original);
    if (truncate) low = floor(low), high = ceil(high);
    if (fmax(low, 0) <= fmin(high, (double)width - 1)) return;
    hec_hf_refuse(config, "factor", "has no elements between beta_fast and beta_slow to scale");
}

static const char *read_yarn(struct hec_hf_config *config, const struct hec_hf_model *model,
                             double theta, double factor) {
    static const char *const keys[] = {"beta_fast", "beta_slow"};
    static const double usual[] = {32, 1};
    double beta[2];
    for (int i = 0; i < 2; i++) {
        beta[i] = hec_hf_number(config, keys[i], 0);
        if (beta[i] == 0) beta[i] = usual[i];
        if (!(beta[i] > 0)) hec_hf_refuse(config, keys[i], "must be above 0");
    }
    if (beta[0] < beta[1])
        hec_hf_refuse(config, keys[hec_hf_says(config, keys[1])],
                      "leaves beta_fast below beta_slow");
    if (!(theta > 1)) hec_hf_refuse(config, "rope_theta", "must be above 1 for yarn");
    const int64_t original = read_original(config);
    const bool given = json_object_get(config->section.object, "truncate"); // Null says no.
    const bool truncate = hec_hf_flag(config, "truncate", !given);
    const double by = read_mscale(config, "mscale"), all = read_mscale(config, "mscale_all_dim");
    const double attention = hec_hf_number(
        config, "attention_factor",
        by > 0 && all > 0 ? mscale_of(factor, by) / mscale_of(factor, all) : mscale_of(factor, 1));
    if (!(attention > 0)) hec_hf_refuse(config, "attention_factor", "must be above 0");
    if (config->sound) check_ramp(config, model, theta, beta, original, truncate);
    return hec_arena_format(config->arena,
                            "yarn(%.15g, original = %lld, fast = %.15g, slow = %.15g, truncate = "
                            "%s, attention = %.15g)",
                            factor, (long long)original, beta[0], beta[1],
                            truncate ? "true" : "false", attention);
}

static const char *read_llama3(struct hec_hf_config *config, double factor) {
    static const char *const keys[] = {"low_freq_factor", "high_freq_factor"};
    for (int i = 0; i < 2; i++) hec_hf_need(config, keys[i]);
    const double low = hec_hf_number(config, keys[0], 1), high = hec_hf_number(config, keys[1], 4);
    if (!(low > 0)) hec_hf_refuse(config, keys[0], "must be above 0");
    if (!(high >= low)) hec_hf_refuse(config, keys[1], "must not be less than low_freq_factor");
    return hec_arena_format(config->arena,
                            "llama3(%.15g, original = %lld, low = %.15g, high = %.15g)", factor,
                            (long long)read_original(config), low, high);
}

// Reads keys of the object that config is in, as all functions below.
static void read_theta(struct hec_hf_config *config, const struct hec_hf_family *family,
                       struct hec_hf_model *model, struct hec_hf_rope *rope) {
    static const char theta[] = "rope_theta", partial[] = "partial_rotary_factor";
    rope->theta = hec_hf_number(config, theta, rope->theta);
    if (hec_hf_has(config, theta) && !(rope->theta > 0))
        hec_hf_refuse(config, theta, "must be above 0");
    if (hec_hf_has(config, partial)) {
        model->partial = hec_hf_number(config, partial, 1);
        if (!family->partial && model->partial != 1)
            hec_hf_refuse(config, partial, "must be 1 in this family");
        else if (!(model->partial > 0 && model->partial <= 1))
            hec_hf_refuse(config, partial, "must be above 0 and at most 1");
    }
    model->rotated = (int64_t)((double)model->head_width * model->partial);
}

// Hunyuan's "dynamic" does not depend on the number of positions if it has an alpha, which stretches theta.
static bool stretches_theta(struct hec_hf_config *config, const struct hec_hf_family *family,
                            const char *type, const struct hec_hf_model *model,
                            struct hec_hf_rope *rope) {
    const bool stretches =
        family->ntk_alpha && strcmp(type, "dynamic") == 0 && hec_hf_has(config, "alpha");
    if (!stretches) return false;
    const double alpha = hec_hf_number(config, "alpha", 1), width = (double)model->head_width;
    if (!(alpha > 0) || width < 3)
        hec_hf_refuse(config, "alpha", "must be above 0, and heads wider than 2");
    else
        rope->theta *= pow(alpha, width / (width - 2));
    return true;
}

static void read_scaling(struct hec_hf_config *config, const struct hec_hf_family *family,
                         struct hec_hf_model *model, struct hec_hf_rope *rope) {
    const char *key = hec_hf_has(config, "rope_type") ? "rope_type" : "type";
    const char *type = hec_hf_text(config, key, "default");
    if (strcmp(type, "default") == 0 || stretches_theta(config, family, type, model, rope)) return;
    const double factor = hec_hf_need(config, "factor") ? hec_hf_number(config, "factor", 0) : 1;
    if (!(factor >= 1))
        hec_hf_refuse(config, "factor", "must be at least 1");
    else if (strcmp(type, "linear") == 0)
        rope->scaling = hec_arena_format(config->arena, "linear(%.15g)", factor);
    else if (strcmp(type, "yarn") == 0)
        rope->scaling = read_yarn(config, model, rope->theta, factor);
    else if (strcmp(type, "llama3") == 0)
        rope->scaling = read_llama3(config, factor);
    else
        hec_hf_refuse(config, key, "is not yet known; default, linear, yarn and llama3 are");
    if (model->latent.rank)
        model->latent.mscale = mscale_of(factor, read_mscale(config, "mscale_all_dim"));
}

static bool is_empty(const json_t *section) {
    return !section || json_is_null(section) ||
           (json_is_object(section) && !json_object_size(section));
}

// Its older name counts first; an empty object is none.
static const char *section_of(const struct hec_hf_config *config) {
    static const char older[] = "rope_scaling", newer[] = "rope_parameters";
    return is_empty(json_object_get(config->root, older)) ? newer : older;
}

// One of the kinds of layers. `theta` is a key of the root, which counts where the kind's object has none.
static void read_kind(struct hec_hf_config *config, const struct hec_hf_family *family,
                      struct hec_hf_model *model, const char *kind, const char *theta,
                      struct hec_hf_rope *rope) {
    static const char section[] = "rope_parameters";
    rope->theta = hec_hf_number(config, theta, 1);
    if (!(rope->theta > 0)) hec_hf_refuse(config, theta, "must be above 0");
    model->partial = 1;
    model->rotated = model->head_width;
    if (!hec_hf_enter(config, section)) return;
    if (hec_hf_enter(config, kind)) {
        read_theta(config, family, model, rope);
        read_scaling(config, family, model, rope);
    }
    hec_hf_leave(config);
}

// Older files have keys of the layers without a window alone.
static void read_older(struct hec_hf_config *config, const struct hec_hf_family *family,
                       struct hec_hf_model *model) {
    static const char older[] = "rope_scaling";
    if (is_empty(json_object_get(config->root, older)) || !hec_hf_enter(config, older)) return;
    read_theta(config, family, model, &model->rope);
    if (hec_hf_has(config, "type") && !hec_hf_has(config, "rope_type"))
        hec_hf_refuse(config, "type", "must be called rope_type in this family");
    read_scaling(config, family, model, &model->rope);
    hec_hf_leave(config);
    if (!is_empty(json_object_get(config->root, "rope_parameters")))
        hec_hf_refuse(config, older, "must not be there beside rope_parameters");
}

static void read_kinds(struct hec_hf_config *config, const struct hec_hf_family *family,
                       struct hec_hf_model *model) {
    static const char section[] = "rope_parameters", full[] = "full_attention";
    const char *key;
    json_t *value, *kinds = json_object_get(config->root, section);
    json_object_foreach(kinds, key, value) {
        if (strcmp(key, full) == 0 || strcmp(key, HEC_HF_WINDOWED) == 0) continue;
        hec_hf_refuse(config, section, "may hold %s and %s, got %s", full, HEC_HF_WINDOWED, key);
        return;
    }
    read_kind(config, family, model, HEC_HF_WINDOWED, "rope_local_base_freq", &model->windowed);
    read_kind(config, family, model, full, "rope_theta", &model->rope);
    read_older(config, family, model);
    if (!model->window) return;
    model->apart = model->rope.theta != model->windowed.theta || model->rope.scaling ||
                   model->windowed.scaling;
}

void hec_hf_read_rope(struct hec_hf_config *config, const struct hec_hf_family *family,
                      struct hec_hf_model *model) {
    static const char elements[] = "rotary_dim";
    if (family->rope_by_kind) {
        read_kinds(config, family, model);
        return;
    }
    const char *section = section_of(config);
    model->rope.theta = model->partial = 1;
    if (family->partial && hec_hf_has(config, elements))
        model->partial = (double)hec_hf_count(config, elements, 1) / (double)model->head_width;
    if (model->partial > 1) hec_hf_refuse(config, elements, "must be at most head_dim");
    read_theta(config, family, model, &model->rope);
    if (family->scaled) hec_hf_need(config, section);
    const double theta = model->rope.theta;
    if (hec_hf_enter(config, section)) {
        read_theta(config, family, model, &model->rope);
        if (family->one_theta && model->rope.theta != theta)
            hec_hf_refuse(config, "rope_theta", "must be the other one, %.15g", theta);
        read_scaling(config, family, model, &model->rope);
        hec_hf_leave(config);
    }
    if (config->sound && !family->latent && (model->rotated < 2 || model->rotated % 2))
        hec_hf_refuse(config, "num_attention_heads",
                      "leaves heads of which no even part is rotated");
    if (family->nope && model->window) {
        model->apart = true;
        model->windowed = model->rope;
        model->rope = (struct hec_hf_rope){.none = true};
    }
}
