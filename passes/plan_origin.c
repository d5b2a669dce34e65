// Hashes of what plans are made for, and their comparison.
#include "passes/plan_origin.h"

#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "files/files.h"
#include "ir/accessors.h"
#include "ir/core/setting.h"
#include "lang/base/arena.h"
#include "passes/base/json_location.h"

enum { TEXT = 128 };

// FNV-1a.
static uint64_t mix(uint64_t hash, const void *data, size_t bytes) {
    const unsigned char *at = data;
    for (size_t i = 0; i < bytes; i++) hash = (hash ^ at[i]) * 0x100000001b3u;
    return hash;
}
static const uint64_t start = 0xcbf29ce484222325u;

static json_t *hash_text(uint64_t hash) {
    return json_sprintf("%016" PRIx64, hash);
}

// Hash of the names, sizes and layers of all parameters, in the order of the module.
static uint64_t hash_parameters(MlirOperation module) {
    uint64_t hash = start;
    HEC_EACH_OF (op, hec_ops_in(hec_module_body(module)), HEC_OP_param) {
        const MlirStringRef name = hec_any_sym_name(op);
        const struct hec_tensor t = hec_tensor_of(hec_any_type(op));
        const int64_t layers = hec_any_layers(op);
        hash = mix(hash, name.data, name.length);
        hash = mix(hash, t.size, (size_t)t.rank * sizeof *t.size);
        hash = mix(hash, &layers, sizeof layers);
    }
    return hash;
}

static json_t *loads_of(MlirOperation module) {
    const MlirStringRef name = hec_module_recorded_loads(module);
    char path[PATH_MAX];
    const char *why;
    if (!name.length) return json_string("assumed");
    snprintf(path, sizeof path, "%.*s", (int)name.length, name.data);
    FILE *file = hf_input(path, false, &why);
    uint64_t hash = start;
    char block[4096];
    for (size_t got; file && (got = fread(block, 1, sizeof block, file)) > 0;)
        hash = mix(hash, block, got);
    if (file) fclose(file);
    return hash_text(hash);
}

static json_t *cluster_of(MlirOperation module) {
    json_t *cluster = json_object();
    struct hec_arena arena = {0};
    if (!hec_module_has_settings(module)) return cluster;
    const MlirAttribute all = hec_module_settings(module);
    for (intptr_t i = 0; i < mlirDictionaryAttrGetNumElements(all); i++) {
        const MlirNamedAttribute one = mlirDictionaryAttrGetElement(all, i);
        const MlirStringRef key = mlirIdentifierStr(one.name);
        char name[TEXT];
        if (key.length >= TEXT || strncmp(key.data, "cluster.", 8) != 0) continue;
        snprintf(name, sizeof name, "%.*s", (int)key.length, key.data);
        json_object_set_new(cluster, name, json_string(hec_setting_print(&arena, one.attribute)));
    }
    hec_arena_free(&arena);
    return cluster;
}

json_t *hec_plan_origin(MlirOperation module) {
    const MlirStringRef name = hec_any_sym_name(module);
    return json_pack("{s:o, s:o, s:o, s:o}", "model", json_stringn(name.data, name.length),
                     "parameters", hash_text(hash_parameters(module)), "loads", loads_of(module),
                     "cluster", cluster_of(module));
}

// ---- comparing

struct comparison {
    struct hec_json_file *file;
    void (*tell)(void *context, const char *text);
    void *context;
};

static const char *text_of(const json_t *value) {
    const char *text = json_string_value(value);
    return !text ? "not said" : *text ? text : "\"\"";
}

// With the place of the last of the keys `path`.
static void __attribute__((format(printf, 3, 4)))
tell(const struct comparison *c, const char *const *path, const char *format, ...) {
    const struct hec_json_location at = hec_json_find(c->file->text, path);
    char what[512], text[PATH_MAX + 600];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    snprintf(text, sizeof text, "%s:%u:%u: this plan was made for %s", c->file->path, at.line,
             at.column, what);
    c->tell(c->context, text);
}

static void compare_setting(const struct comparison *c, const char *key, const json_t *was,
                            const json_t *is) {
    if (was == is || json_equal(was, is)) return;
    tell(c, (const char *const[]){"made_for", "cluster", key, NULL},
         "another cluster: `%.60s` is %.120s here, was %.120s", key, text_of(is), text_of(was));
}

static void compare_cluster(const struct comparison *c, json_t *theirs, json_t *own) {
    const char *key;
    json_t *value;
    json_object_foreach(own, key, value) {
        compare_setting(c, key, json_object_get(theirs, key), value);
    }
    json_object_foreach(theirs, key, value) {
        if (!json_object_get(own, key)) compare_setting(c, key, value, NULL);
    }
}

static void compare(const struct comparison *c, const json_t *theirs, const json_t *own,
                    bool recorded) {
    const char *key = "parameters";
    if (!json_equal(json_object_get(theirs, key), json_object_get(own, key)))
        tell(c, (const char *const[]){"made_for", key, NULL}, "other parameters: those of `%.120s`",
             text_of(json_object_get(theirs, "model")));
    key = "loads";
    if (recorded && !json_equal(json_object_get(theirs, key), json_object_get(own, key)))
        tell(c, (const char *const[]){"made_for", key, NULL},
             "other loads than those of --profile");
    compare_cluster(c, json_object_get(theirs, "cluster"), json_object_get(own, "cluster"));
}

void hec_plan_compare_origin(MlirOperation module, const char *path,
                             void (*tell)(void *context, const char *text), void *context) {
    const MlirOperation none = {0};
    struct hec_json_file file = hec_json_open(none, "plan", path);
    const json_t *theirs = json_object_get(file.root, "made_for");
    const struct comparison c = {&file, tell, context};
    json_t *own = theirs ? hec_plan_origin(module) : NULL;
    if (theirs) compare(&c, theirs, own, hec_module_recorded_loads(module).length > 0);
    json_decref(own);
    hec_json_close(&file);
}
