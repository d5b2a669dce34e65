// Names of Hugging Face's, before anything is compiled: the runtime would find them missing when it reads weights.
#include "codegen/import/hf_names.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "lang/base/str.h"
#include "runtime/store/hf_page.h"

enum { PATHS = 256, PATH = 512, WHY = 300 };

// A pattern as a path that is like `path`: * stands for the second last part of a layer's path, "sparse" of
// "layers.{}.sparse.w1".
static void path_of(const char *pattern, const char *path, char out[PATH]) {
    const char *star = strchr(pattern, '*'), *owner = strchr(path, '.');
    owner = owner ? strchr(owner + 1, '.') : NULL;
    if (!star || !owner) {
        snprintf(out, PATH, "%s", pattern);
        return;
    }
    owner++;
    snprintf(out, PATH, "%.*s%.*s%s", (int)(star - pattern), pattern, (int)strcspn(owner, "."),
             owner, star + 1);
}

static const char *tail_of(const char *path) {
    const char *dot = strrchr(path, '.');
    return dot ? dot + 1 : path;
}

// The path of the family's that was probably meant: the last part decides, then the whole. NULL: none is near.
static const char *meant_of(const struct hrt_hf_family *family, const char *path) {
    static char candidate[PATHS][PATH];
    const char *list[PATHS], *tail[PATHS];
    int count = 0, left = 0;
    for (int starred = 0; starred < 2; starred++) { // The first of equally near ones counts.
        const struct hrt_hf_rule *rule = NULL;
        while (count < PATHS && (rule = hrt_store_hf_next_rule(family, rule))) {
            if ((strchr(rule->ours, '*') != NULL) != (starred == 1)) continue;
            path_of(rule->ours, path, candidate[count]);
            list[count] = candidate[count];
            tail[count] = tail_of(candidate[count]);
            count++;
        }
    }
    const char *nearest = hec_closest(tail_of(path), tail, count);
    for (int i = 0; nearest && i < count; i++) {
        if (strcmp(tail[i], nearest) == 0) list[left++] = list[i];
    }
    const char *whole = hec_closest(path, list, left);
    return whole || left == 0 ? whole : list[0];
}

static void suggest(const struct hrt_hf_family *family, const char *path, struct hec_diag *diag) {
    const char *meant = meant_of(family, path);
    if (meant)
        hec_diag_detail(diag, "did you mean `%s`?", meant);
    else
        hec_diag_detail(diag, "docs/huggingface.md has the paths; without `names hf` the model "
                              "compiles, and reads and writes no such folders");
}

static bool has_layer(const struct hec_param *param, int64_t index) {
    const int64_t at = index - param->index_first, stride = param->index_stride;
    if (stride == 0) return at == 0;
    return at % stride == 0 && at / stride >= 0 && at / stride < param->layers;
}

static bool share_a_layer(const struct hec_param *a, const struct hec_param *b) {
    if (a->layers == 0 || b->layers == 0) return a->layers == b->layers;
    for (int64_t i = 0; i < a->layers; i++) {
        if (has_layer(b, a->index_first + i * a->index_stride)) return true;
    }
    return false;
}

// Adapters are named after their weights, in folders of their own.
static bool is_stored(const struct hec_param *param) {
    return param->init != HEC_INIT_ROPE && !param->lora;
}

// The layer that predicts a token more is a layer of its own.
static bool are_one(const struct hrt_hf_family *family, const struct hec_param *a,
                    const struct hec_param *b) {
    return is_stored(b) &&
           hrt_store_hf_rule_of(family, a->path) == hrt_store_hf_rule_of(family, b->path) &&
           hrt_store_hf_is_predictor(a->path) == hrt_store_hf_is_predictor(b->path) &&
           share_a_layer(a, b);
}

static bool check_params(const struct hec_program *program, const struct hrt_hf_family *family,
                         struct hec_diag *diag) {
    const uint32_t errors_before = diag->errors;
    for (int i = 0; family && i < program->params; i++) {
        const struct hec_param *param = program->param[i];
        if (!is_stored(param)) continue;
        const struct hrt_hf_rule *rule = hrt_store_hf_rule_of(family, param->path);
        if (!rule) {
            hec_diag_report(diag, HEC_ERROR, param->at,
                            "parameter `%s` has no name in family %s of Hugging Face's",
                            param->path, family->name);
            suggest(family, param->path, diag);
        }
        for (int before = 0; rule && before < i; before++) {
            if (!are_one(family, param, program->param[before])) continue;
            hec_diag_report(diag, HEC_ERROR, param->at,
                            "parameters `%s` and `%s` would both be `%s` in family %s of Hugging "
                            "Face's",
                            program->param[before]->path, param->path, rule->layout[0].name,
                            family->name);
            break;
        }
    }
    return diag->errors == errors_before;
}

bool hec_check_names(const struct hec_program *program, struct hec_diag *diag) {
    const char *name = hec_program_text(program, HEC_KEY_names_hf_family);
    const char *rules = hec_program_text(program, HEC_KEY_names_hf_rules);
    const struct hrt_hf_family *family = hrt_store_hf_family_named(name ? name : "");
    struct hrt_hf_page page = {0};
    char why[WHY];
    if (rules && *rules) {
        if (!hrt_store_hf_read_page(&page, name ? name : "", rules, why, sizeof why)) {
            const struct hec_setting *at = hec_program_setting(program, HEC_KEY_names_hf_rules);
            hec_diag_report(diag, HEC_ERROR, at->at, "names.hf.rules: %s", why);
            return false;
        }
        family = &page.family;
    }
    const bool sound = check_params(program, family, diag);
    hrt_store_hf_free_page(&page);
    return sound;
}
