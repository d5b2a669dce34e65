// Finds and compares them.
#include "runtime/store/hf_needless.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/text.h"

static void pass(struct hrt_hf_needless *needless, const struct hrt_stored *entry, json_t *left) {
    if (!needless->first) needless->first = entry->name;
    needless->count++;
    json_object_del(left, entry->name);
}

// Old versions of libraries saved them.
static void pass_frequencies(const struct hrt_hf_folder *folder, struct hrt_hf_needless *needless,
                             json_t *left) {
    const char *name;
    json_t *number;
    void *next;
    json_object_foreach_safe(left, next, name, number) {
        struct hrt_safetensors *file;
        if (hrt_base_ends_with(name, ".rotary_emb.inv_freq"))
            pass(needless, hrt_store_hf_find(folder, name, &file), left);
    }
}

// Whether a family says that programs pass over a tensor.
static bool is_passed(const struct hrt_hf_family *family, int64_t layers, const char *name) {
    const struct hrt_hf_rule *rule = NULL;
    while ((rule = hrt_store_hf_next_rule(family, rule))) {
        if (strcmp(rule->ours, HRT_HF_PASSED) != 0) continue;
        const char *theirs = rule->layout[0].name, *hole = strstr(theirs, "{}");
        const int before = hole ? (int)(hole - theirs) : (int)strlen(theirs);
        char begin[HRT_PATH_MAX];
        snprintf(begin, sizeof begin, "%.*s", before, theirs);
        if (hole)
            snprintf(begin + before, sizeof begin - (size_t)before, "%" PRId64 "%s", layers,
                     hole + 2);
        if (strncmp(name, begin, strlen(begin)) == 0) return true;
    }
    return false;
}

// Such as layers that predict further tokens, which the family's own models do not compute.
static void pass_said(const struct hrt_hf_folder *folder, const struct hrt_hf_family *family,
                      const struct hrt_program *program, struct hrt_hf_needless *needless,
                      json_t *left) {
    const int64_t layers = hrt_store_hf_layers(program);
    const char *name;
    json_t *number;
    void *next;
    json_object_foreach_safe(left, next, name, number) {
        struct hrt_safetensors *file;
        if (is_passed(family, layers, name))
            pass(needless, hrt_store_hf_find(folder, name, &file), left);
    }
}

static const struct hrt_param *find_param(const struct hrt_program *program, const char *path) {
    for (int i = 0; i < program->params; i++) {
        if (strcmp(program->param[i].path, path) == 0) return &program->param[i];
    }
    return NULL;
}

static bool pass_head(const struct hrt_hf_folder *folder, const struct hrt_hf_family *family,
                      const struct hrt_program *program, json_t *left,
                      struct hrt_hf_needless *needless) {
    static const char head[] = "lm_head.weight";
    const struct hrt_param *embed = find_param(program, "embed");
    const struct hrt_hf_rule *rule = embed ? hrt_store_hf_rule_of(family, embed->path) : NULL;
    struct hrt_safetensors *file[2];
    const struct hrt_stored *entry[2];
    bool same;
    if (!rule || find_param(program, "head") || !json_object_get(left, head)) return true;
    entry[0] = hrt_store_hf_find(folder, rule->layout[0].name, &file[0]);
    entry[1] = hrt_store_hf_find(folder, head, &file[1]);
    if (!hrt_store_hf_same(file, entry, &same)) return false;
    if (!same)
        return hrt_fail(folder->error,
                        "'%s' is of another model: '%s' is not the same as '%s', which this one "
                        "takes for both",
                        folder->path, head, rule->layout[0].name);
    pass(needless, entry[1], left);
    return true;
}

bool hrt_store_hf_pass_needless(const struct hrt_hf_folder *folder,
                                const struct hrt_hf_family *family,
                                const struct hrt_program *program, json_t *left,
                                struct hrt_hf_needless *needless) {
    *needless = (struct hrt_hf_needless){folder->beside, folder->beside_first};
    pass_frequencies(folder, needless, left);
    pass_said(folder, family, program, needless, left);
    return pass_head(folder, family, program, left, needless);
}
