// Passes over layers that predict further tokens, and compares copies.
#include "runtime/store/hf_predictors.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

// Whether a tensor that nothing has asked for is of a layer that predicts further tokens: it takes two vectors in, by
// eh_proj, and none of the program's layers has taken its norm.
static bool is_predictors(const json_t *left, const char *name) {
    static const char layers[] = "model.layers.";
    static const char *const marks[] = {"eh_proj", "input_layernorm"};
    char mark[HRT_PATH_MAX];
    if (strncmp(name, layers, strlen(layers)) != 0) return false;
    const int digits = (int)strspn(name + strlen(layers), "0123456789");
    for (int i = 0; i < 2; i++) {
        snprintf(mark, sizeof mark, "%s%.*s.%s.weight", layers, digits, name + strlen(layers),
                 marks[i]);
        if (!json_object_get(left, mark)) return false;
    }
    return true;
}

size_t hrt_store_hf_pass_over(json_t *left) {
    const char *name;
    json_t *file;
    void *next;
    size_t passed = 0;
    json_t *all = json_copy(left); // Marks stay until the last one is found.
    json_object_foreach_safe(left, next, name, file) {
        if (!is_predictors(all, name)) continue;
        json_object_del(left, name);
        passed++;
    }
    json_decref(all);
    return passed;
}

bool hrt_store_hf_check_copies(const struct hrt_hf_folder *folder,
                               const struct hrt_hf_family *family,
                               const struct hrt_program *program, json_t *left) {
    struct hrt_hf_copy copy = {0};
    while (hrt_store_hf_next_copy(family, program, &copy)) {
        char name[2][HRT_PATH_MAX];
        struct hrt_safetensors *file[2];
        const struct hrt_stored *entry[2];
        const struct hrt_hf_rule *rule[] = {hrt_store_hf_rule_of(family, copy.tensor.param->path),
                                            copy.rule};
        for (int i = 0; i < 2; i++) {
            hrt_store_hf_name(program, &copy.tensor, rule[i]->layout[0].name, name[i]);
            entry[i] = hrt_store_hf_find(folder, name[i], &file[i]);
        }
        if (!entry[1]) continue;
        bool same;
        if (!hrt_store_hf_same(file, entry, &same)) return false;
        if (!same)
            return hrt_fail(folder->error,
                            "'%s' is of another model: '%s' is not the same as '%s', which this "
                            "one takes for both",
                            folder->path, name[1], name[0]);
        json_object_del(left, name[1]);
    }
    return true;
}
