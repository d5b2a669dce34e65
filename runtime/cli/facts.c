// Facts as JSON, and how they are compared.
#include "runtime/cli/facts.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/cli/same.h"
#include "runtime/fssdp/history.h"

// Settings that what is learned depends on.
static bool decides(const struct hrt_setting_row *row) {
    return strncmp(row->key, "train.", 6) == 0 && strncmp(row->key, "train.eval", 10) != 0 &&
           strcmp(row->key, "train.skip_max") != 0 &&
           strcmp(row->key, "train.tokens") != 0; // Of which the trainer knows the number.
}

// What the program was compiled with for a group of parameters.
static bool is_group(const char *key) {
    return strncmp(key, "train.parameters.", 17) == 0;
}

static json_t *settings_of(const struct hrt_trainer *trainer) {
    json_t *settings = json_object();
    for (const struct hrt_setting_row *row = hrt_setting_rows; row->key; row++) {
        char *text = decides(row) ? hrt_config_text(trainer->config, row) : NULL;
        if (text) json_object_set_new(settings, row->key, json_string(text));
        free(text);
    }
    const struct hrt_program *program = trainer->state->program;
    for (int i = 0; i < program->settings; i++) {
        const struct hrt_setting *setting = &program->setting[i];
        if (is_group(setting->key))
            json_object_set_new(settings, setting->key, json_string(setting->value));
    }
    char tokens[32];
    snprintf(tokens, sizeof tokens, "%" PRId64, trainer->tokens);
    json_object_set_new(settings, "train.tokens", json_string(tokens));
    return settings;
}

static json_t *data_of(const struct hrt_data *data) {
    json_t *files = json_array();
    for (int i = 0; i < data->train.parts; i++) {
        char text[HRT_CONTENT_TEXT];
        hrt_content_text(text, data->file[data->train.part[i].file].fd, data->files);
        json_array_append_new(files, json_string(text));
    }
    return files;
}

static json_t *teachers_of(const struct hrt_teachers *teachers) {
    json_t *files = json_array();
    for (int i = 0; i < teachers->files; i++) {
        char text[HRT_CONTENT_TEXT];
        hrt_content_text(text, teachers->file[i].fd, teachers->files);
        json_array_append_new(files, json_string(text));
    }
    return files;
}

json_t *hrt_facts(const struct hrt_program *program, const struct hrt_trainer *trainer,
                  int64_t step) {
    const int64_t sequences = step * (trainer->tokens / program->positions);
    json_t *facts = json_pack("{s:I s:I s:s s:o s:o s:o s:{}}", "step", (json_int_t)step,
                              "sequences", (json_int_t)sequences, "program", program->name,
                              "settings", settings_of(trainer), "data", data_of(trainer->data),
                              "teacher", teachers_of(&trainer->data->teachers), "files");
    const struct hrt_fssdp *fssdp = trainer->state->fssdp;
    json_t *history = fssdp ? hrt_fssdp_history(fssdp) : json_null();
    if (facts && history && json_object_set_new(facts, "experts", history) == 0) return facts;
    json_decref(facts);
    return NULL;
}

// ---- comparing

struct differences {
    char text[640];
    size_t used;
};

static void differ(struct differences *differences, const char *what, const char *there,
                   const char *here) {
    const size_t room = sizeof differences->text - differences->used;
    const int put = snprintf(differences->text + differences->used, room,
                             "%s%s was %.80s there and is %.80s here",
                             differences->used ? "; " : "", what, there, here);
    if (put > 0 && (size_t)put < room) differences->used += (size_t)put;
    differences->text[differences->used] = '\0'; // The last one whole.
}

static const char *text_or(const json_t *text, const char *other) {
    const char *value = json_string_value(text);
    return value ? value : other;
}

static void compare_settings(struct differences *differences, const json_t *there, json_t *here) {
    const char *key;
    json_t *value;
    json_object_foreach(here, key, value) {
        const char *before = text_or(json_object_get(there, key), "nothing");
        if (strcmp(before, json_string_value(value)) != 0)
            differ(differences, key, before, json_string_value(value));
    }
    json_object_foreach((json_t *)there, key, value) {
        if (is_group(key) && !json_object_get(here, key))
            differ(differences, key, text_or(value, "something"), "nothing");
    }
}

static void compare_files(struct differences *differences, const char *kind, const json_t *there,
                          const json_t *here) {
    const size_t before = json_array_size(there), now = json_array_size(here);
    for (size_t i = 0; i < before || i < now; i++) {
        char what[48];
        snprintf(what, sizeof what, "%s file %zu", kind, i + 1);
        const char *was = text_or(json_array_get(there, i), "missing");
        const char *is = text_or(json_array_get(here, i), "missing");
        if (strcmp(was, is) != 0) differ(differences, what, was, is);
    }
}

bool hrt_facts_agree(const json_t *facts, const struct hrt_trainer *trainer,
                     struct hrt_error *error) {
    struct differences differences = {0};
    json_t *settings = settings_of(trainer), *data = data_of(trainer->data);
    json_t *teachers = teachers_of(&trainer->data->teachers);
    compare_settings(&differences, json_object_get(facts, "settings"), settings);
    compare_files(&differences, "training", json_object_get(facts, "data"), data);
    compare_files(&differences, "teacher's", json_object_get(facts, "teacher"), teachers);
    json_decref(settings);
    json_decref(data);
    json_decref(teachers);
    return !differences.used || hrt_fail(error, "%s", differences.text);
}

// ---- files

void hrt_facts_note_log(json_t *facts, const struct hrt_jsonl *log) {
    const int64_t bytes = hrt_jsonl_bytes(log);
    if (bytes < 0) return;
    json_object_set_new(json_object_get(facts, "files"), log->path, json_integer(bytes));
}

int64_t hrt_facts_log(const json_t *facts, const char *path) {
    const json_t *bytes = json_object_get(json_object_get(facts, "files"), path);
    return json_integer_value(bytes) > 0 ? json_integer_value(bytes) : 0;
}
