// Keys and values of config.json, with their places.
#include "codegen/import/hf_config.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/base/status.h"
#include "files/files.h"
#include "passes/base/json_location.h"

static bool fail(const struct hec_hf_config *config, const char *why) {
    return hec_fail("cannot read '%s': %s", config->path, why);
}

static bool load(struct hec_hf_config *config, size_t *bytes) {
    const char *why;
    FILE *file = hf_input(config->path, false, &why);
    if (!file) return fail(config, why);
    size_t room = 0;
    const ssize_t count = getdelim(&config->text, &room, EOF, file);
    const bool failed = ferror(file);
    const int reason = errno;
    fclose(file);
    *bytes = count > 0 ? (size_t)count : 0;
    if (failed) return fail(config, strerror(reason));
    return *bytes > 0 || fail(config, "it is empty");
}

bool hec_hf_open(struct hec_hf_config *config, struct hec_arena *arena, const char *path) {
    size_t bytes = 0;
    json_error_t error;
    *config = (struct hec_hf_config){.arena = arena, .path = path};
    if (!load(config, &bytes)) return false;
    config->root = config->file = json_loadb(config->text, bytes, JSON_REJECT_DUPLICATES, &error);
    if (!json_is_object(config->root)) {
        const int line = config->root ? 1 : error.line;
        fprintf(stderr, "%s:%d: error: %s\n", path, line > 0 ? line : 1,
                config->root ? "an object is expected" : error.text);
        return false;
    }
    hec_hf_leave(config);
    config->standing = hec_checked(json_object());
    config->sound = true;
    return true;
}

void hec_hf_close(struct hec_hf_config *config) {
    json_decref(config->file);
    json_decref(config->standing);
    free(config->text);
    *config = (struct hec_hf_config){0};
}

static const char *asked_as(const struct hec_hf_key *key) {
    return key->as ? key->as : key->name;
}

// The value in the file of this very key; NULL: there is none.
static json_t *value_of(const struct hec_hf_config *config, const struct hec_hf_key *key) {
    const json_t *object = key->in ? json_object_get(config->root, key->in) : config->root;
    return json_object_get(object, key->name);
}

// Whether the file itself has a value of it.
static bool stands(const struct hec_hf_config *config, const struct hec_hf_key *key) {
    const json_t *value = value_of(config, key);
    return value && !json_is_null(value) && !key->fixed;
}

static bool lies_in(const struct hec_hf_key *key, const char *in) {
    return in && key->in ? strcmp(key->in, in) == 0 : in == key->in;
}

// Whether a line before has the same key: then that one counts.
static bool is_repeated(const struct hec_hf_config *config, const struct hec_hf_key *key) {
    for (const struct hec_hf_key *before = config->keys; before < key; before++) {
        if (strcmp(before->name, key->name) == 0 && lies_in(before, key->in)) return true;
    }
    return false;
}

// The row of a key that is asked for: of several, the first one that the file has.
static const struct hec_hf_key *row_of(const struct hec_hf_config *config, const char *name) {
    const struct hec_hf_key *first = NULL;
    for (const struct hec_hf_key *key = config->keys; key && key->name; key++) {
        if (strcmp(asked_as(key), name) != 0 || is_repeated(config, key)) continue;
        if (stands(config, key)) return key;
        if (!first) first = key;
    }
    return first;
}

// The same, in the section that config is in: objects within the root have keys of their own.
static const struct hec_hf_key *row_here(const struct hec_hf_config *config, const char *name) {
    return config->section.depth == 0 ? row_of(config, name) : NULL;
}

// How the file calls it.
static const char *called(const struct hec_hf_config *config, const char *name) {
    const struct hec_hf_key *row = row_here(config, name);
    return row ? row->name : name;
}

// "config.json:12:3".
static void print_place(const struct hec_hf_config *config, const char *key, const char *object) {
    const struct hec_hf_section *section = &config->section;
    const char *in[HEC_HF_DEPTH + 4] = {0};
    int depth = 0;
    if (config->root_key) in[depth++] = config->root_key;
    if (object) in[depth++] = object;
    const bool above = !json_object_get(section->object, key) && json_object_get(config->root, key);
    for (int i = 0; i < section->depth && !above; i++) in[depth++] = section->key[i];
    in[depth] = key;
    const struct hec_json_location at = hec_json_find(config->text, in);
    fprintf(stderr, "%s:%u:%u: ", config->path, at.line, at.column);
}

void hec_hf_refuse(struct hec_hf_config *config, const char *asked, const char *format, ...) {
    va_list arguments;
    const char *key = called(config, asked);
    const struct hec_hf_key *row = row_of(config, asked), *here = row_here(config, asked);
    const json_t *above = here ? value_of(config, here) : json_object_get(config->root, key);
    const bool stands = hec_hf_says(config, asked) || (above && !json_is_null(above));
    config->sound = false;
    if (stands || !row || !row->absent) {
        print_place(config, key, here ? here->in : NULL);
        fprintf(stderr, "error: `%s` ", key);
    } else {
        fprintf(stderr, "%s: error: `%s`, by default %s, ", config->path, key, row->absent);
    }
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fprintf(stderr, "\n");
}

bool hec_hf_says(const struct hec_hf_config *config, const char *key) {
    const struct hec_hf_key *row = row_here(config, key);
    const json_t *value =
        row ? value_of(config, row) : json_object_get(config->section.object, key);
    return value && !json_is_null(value) && !(row && row->fixed);
}

// The default value of a key that is absent or null; NULL: there is none.
static json_t *stand_in(struct hec_hf_config *config, const struct hec_hf_key *row, bool null) {
    const char *text = null && row->null ? row->null : row->absent;
    const char *name = hec_arena_format(config->arena, "%s %s", row->in ? row->in : "", row->name);
    json_t *value = json_object_get(config->standing, name);
    if (!text || value) return value;
    value = hec_checked(json_loads(text, JSON_DECODE_ANY, NULL));
    json_object_set_new(config->standing, name, value);
    return value;
}

static json_t *find(struct hec_hf_config *config, const char *key) {
    const struct hec_hf_key *row = row_here(config, key);
    if (config->keys && config->section.depth == 0 && !row) return NULL; // Another family's.
    json_t *value = row ? value_of(config, row) : json_object_get(config->section.object, key);
    if (row && !hec_hf_says(config, key)) value = stand_in(config, row, value && !row->fixed);
    if (row && row->zero && json_is_integer(value) && json_integer_value(value) == 0) return NULL;
    return json_is_null(value) ? NULL : value;
}

bool hec_hf_has(struct hec_hf_config *config, const char *key) {
    return find(config, key) != NULL;
}

// There is no place to name.
static void miss(struct hec_hf_config *config, const char *key) {
    config->sound = false;
    fprintf(stderr, "%s: error: there is no `%s`\n", config->path, called(config, key));
}

// The value that a list has for each layer; NULL, after a complaint: they differ, or there are too few.
static const json_t *of_each(struct hec_hf_config *config, const char *key, const json_t *list) {
    const size_t layers = (size_t)hec_hf_count(config, "num_hidden_layers", 0);
    bool same = json_array_size(list) == layers;
    for (size_t i = 1; same && i < layers; i++)
        same = json_equal(json_array_get(list, i), json_array_get(list, 0));
    if (!same) hec_hf_refuse(config, key, "must be one number, or the same one for each layer");
    return same ? json_array_get(list, 0) : NULL;
}

int64_t hec_hf_count(struct hec_hf_config *config, const char *key, int64_t otherwise) {
    const struct hec_hf_key *row = row_here(config, key);
    const json_t *value = find(config, key);
    if (row && row->each && json_is_array(value)) {
        value = of_each(config, key, value);
        if (!value) return 1;
    }
    if (!value) {
        if (otherwise) return otherwise;
        miss(config, key);
        return 1;
    }
    const json_int_t count = json_integer_value(value);
    if (json_is_integer(value) && count >= 1 && count <= (json_int_t)1 << 31) return count;
    hec_hf_refuse(config, key, "must be a whole number from 1 on");
    return 1;
}

// Whether a key has the one value that it may have.
static bool is_only(struct hec_hf_config *config, const struct hec_hf_key *key) {
    if (!key->only) return true;
    const json_t *value = find(config, asked_as(key));
    json_t *only = hec_checked(json_loads(key->only, JSON_DECODE_ANY, NULL));
    const bool same = !value ? json_is_null(only)
                      : json_is_number(value) && json_is_number(only)
                          ? json_number_value(value) == json_number_value(only)
                          : json_equal(value, only);
    json_decref(only);
    return same;
}

bool hec_hf_set_keys(struct hec_hf_config *config, const struct hec_hf_key *keys) {
    bool there = true;
    config->keys = keys;
    for (const struct hec_hf_key *key = keys; key->name; key++) {
        if (is_repeated(config, key)) continue;
        const char *name = asked_as(key);
        const struct hec_hf_key *counts = row_of(config, name);
        const json_t *value = value_of(config, key);
        if (counts != key && stands(config, key) && !json_equal(value, value_of(config, counts))) {
            hec_hf_refuse(config, name, "must be %s", key->name);
            there = false;
        } else if (!key->absent && !hec_hf_says(config, name) && !(value && key->null)) {
            miss(config, name);
            there = false;
        } else if (!is_only(config, key)) {
            hec_hf_refuse(config, name, "must be %s: %s", key->only, key->why);
            there = false;
        }
    }
    return there;
}

bool hec_hf_need(struct hec_hf_config *config, const char *key) {
    if (hec_hf_says(config, key)) return true;
    miss(config, key);
    return false;
}

double hec_hf_number(struct hec_hf_config *config, const char *key, double otherwise) {
    const json_t *value = find(config, key);
    if (!value || json_is_number(value)) return value ? json_number_value(value) : otherwise;
    hec_hf_refuse(config, key, "must be a number");
    return otherwise;
}

bool hec_hf_flag(struct hec_hf_config *config, const char *key, bool otherwise) {
    const json_t *value = find(config, key);
    if (!value || json_is_boolean(value)) return value ? json_is_true(value) : otherwise;
    hec_hf_refuse(config, key, "must be true or false");
    return otherwise;
}

const char *hec_hf_text(struct hec_hf_config *config, const char *key, const char *otherwise) {
    const json_t *value = find(config, key);
    if (json_is_string(value)) return json_string_value(value);
    if (value)
        hec_hf_refuse(config, key, "must be a text");
    else if (!otherwise)
        miss(config, key);
    return otherwise;
}

json_t *hec_hf_list(struct hec_hf_config *config, const char *key) {
    json_t *value = find(config, key);
    if (!value || json_is_array(value)) return value;
    hec_hf_refuse(config, key, "must be an array");
    return NULL;
}

bool hec_hf_descend(struct hec_hf_config *config, const char *key) {
    if (!hec_hf_need(config, key) || !hec_hf_enter(config, key)) return false;
    config->root = config->section.object;
    config->root_key = key;
    hec_hf_leave(config);
    return true;
}

bool hec_hf_enter(struct hec_hf_config *config, const char *key) {
    json_t *value = find(config, key);
    if (!value) return false;
    if (!json_is_object(value)) {
        hec_hf_refuse(config, key, "must be an object");
        return false;
    }
    config->section.object = value;
    config->section.key[config->section.depth++] = key;
    return true;
}

void hec_hf_leave(struct hec_hf_config *config) {
    config->section = (struct hec_hf_section){.object = config->root};
}

static bool says_nothing(const json_t *value) {
    return json_is_null(value) || json_is_false(value) ||
           (json_is_array(value) && json_array_size(value) == 0) ||
           (json_is_object(value) && json_object_size(value) == 0);
}

static bool is_listed(const struct hec_hf_config *config, const char *name, const char *in) {
    const struct hec_hf_key *key = config->keys;
    while (key->name && (key->fixed || strcmp(key->name, name) != 0 || !lies_in(key, in))) key++;
    return key->name;
}

// Warns of keys of the root, or of its object `in`.
static void warn_foreign_in(const struct hec_hf_config *config, const char *in, const char *family,
                            const char *(*others)(const char *key)) {
    const char *key;
    json_t *value, *object = in ? json_object_get(config->root, in) : config->root;
    json_object_foreach(object, key, value) {
        if (is_listed(config, key, in) || is_listed(config, key, NULL) || says_nothing(value))
            continue; // transformers writes keys of the root into objects, too.
        const char *other = others(key);
        print_place(config, key, in);
        if (other)
            fprintf(stderr, "warning: `%s` is a key of %s, not of %s: it is not obeyed\n", key,
                    other, family);
        else
            fprintf(stderr, "warning: `%s` is not known: the model may compute something else\n",
                    key);
    }
}

void hec_hf_warn_foreign(const struct hec_hf_config *config, const char *family,
                         const char *(*others)(const char *key)) {
    warn_foreign_in(config, NULL, family, others);
    for (const struct hec_hf_key *key = config->keys; key->name; key++) {
        const struct hec_hf_key *first = config->keys; // The first one in this object.
        while (key->in && !lies_in(first, key->in)) first++;
        if (key->in && first == key) warn_foreign_in(config, key->in, family, others);
    }
}
