// Facts as JSON.
#include "runtime/cli/facts.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "files/files.h"
#include "runtime/cli/differences.h"
#include "runtime/cli/same.h"
#include "runtime/experts/history.h"
#include "runtime/store/checkpoint_values.h"

// Whether what is learned depends on a row.
static bool counts(const struct hrt_config *config, const struct hrt_setting_row *row) {
    if (strcmp(row->key, "train.steps") == 0)
        return config->train_schedule != HRT_SCHEDULE_constant;
    if (strcmp(row->key, "train.epochs") == 0) return false; // It sets train.steps.
    return !row->differs && hrt_config_counts(config, row);
}

// Settings of compiled programs that say where and how fast, not what.
static bool is_of_machine(const char *key) {
    return strncmp(key, "parallel.", 9) == 0 || strncmp(key, "cluster.", 8) == 0 ||
           strncmp(key, "names.", 6) == 0;
}

static bool is_row(const char *key) {
    for (const struct hrt_setting_row *row = hrt_config_rows; row->key; row++) {
        if (strcmp(row->key, key) == 0) return true;
    }
    return false;
}

static void add_text(json_t *settings, const char *key, const char *format, ...) {
    char text[80];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    json_object_set_new(settings, key, json_string(text));
}

// Adds values that depend on several settings, or on the machine.
static void add_resolved(json_t *settings, const struct hrt_trainer *trainer) {
    const struct hrt_config *config = trainer->config;
    const struct hrt_program *program = trainer->program;
    add_text(settings, "train.tokens", "%" PRId64, trainer->tokens);
    if (config->train_group == 0 && program->sets > 0)
        add_text(settings, "the sequences of train.group", "%" PRId64,
                 trainer->batch * trainer->comm->size);
    if (program->gradients_bf16) add_text(settings, "parallel.gradients", "bf16");
    for (int i = 0; i < trainer->data->sources && trainer->data->sources > 1; i++) {
        char key[32];
        snprintf(key, sizeof key, "share %d of data.train", i + 1);
        add_text(settings, key, "%g", trainer->data->source[i].share);
    }
    const double held_out = trainer->data->held_out;
    add_text(settings, "data.held_out", "%g%s", held_out,
             held_out == 0 && config->data_held_out == 0 ? " (auto, with --val)" : "");
}

static json_t *settings_of(const struct hrt_trainer *trainer) {
    json_t *settings = json_object();
    for (const struct hrt_setting_row *row = hrt_config_rows; row->key; row++) {
        char *text = counts(trainer->config, row) ? hrt_config_text(trainer->config, row) : NULL;
        if (text) json_object_set_new(settings, row->key, json_string(text));
        free(text);
    }
    const struct hrt_program *program = trainer->program;
    for (int i = 0; i < program->settings; i++) {
        const struct hrt_setting *setting = &program->setting[i];
        if (!is_row(setting->key) && !is_of_machine(setting->key))
            json_object_set_new(settings, setting->key, json_string(setting->value));
    }
    add_resolved(settings, trainer);
    return settings;
}

static json_t *model_of(const struct hrt_program *program) {
    json_t *parts = json_object();
    for (int i = 0; i < program->parts; i++)
        json_object_set_new(parts, program->part[i].key, json_string(program->part[i].value));
    return parts;
}

// `sharing`: files that share what is read of them.
static json_t *data_of(const struct hrt_data *data, int sharing) {
    json_t *files = json_array();
    for (int i = 0; i < data->train.parts; i++) {
        char text[HRT_CONTENT_TEXT];
        hrt_cli_content_text(text, data->file[data->train.part[i].file].fd, sharing);
        json_array_append_new(files, json_string(text));
    }
    return files;
}

// The teacher files of the training files.
static json_t *teachers_of(const struct hrt_data *data) {
    const struct hrt_teachers *teachers = &data->teachers;
    json_t *files = json_array();
    for (int i = 0; teachers->files > 0 && i < data->train.parts; i++) {
        char text[HRT_CONTENT_TEXT];
        const int of = teachers->of[data->train.part[i].file];
        hrt_cli_content_text(text, teachers->file[of].fd, data->train.parts);
        json_array_append_new(files, json_string(text));
    }
    return files;
}

// The value of --route; a file is known by its content, not its name.
static json_t *route_of(const char *route) {
    const char *file = route ? strchr(route, ':') : NULL;
    char content[HRT_CONTENT_TEXT] = "cannot be read";
    const char *why;
    if (!route) return json_string("model");
    if (!file || strncmp(route, "zipf:", 5) == 0) return json_string(route);
    const int fd = hf_open_input(file + 1, false, &why);
    if (fd >= 0) {
        hrt_cli_content_text(content, fd, 1);
        close(fd);
    }
    return json_sprintf("%.*s %s", (int)(file + 1 - route), route, content);
}

json_t *hrt_cli_facts(const struct hrt_trainer *trainer, const char *route, int64_t step) {
    const struct hrt_program *program = trainer->program;
    json_t *facts =
        json_pack("{s:I s:I s:I s:s s:s s:o s:o s:o s:o s:o s:{}}", "step", (json_int_t)step,
                  "sequences", (json_int_t)hrt_train_trainer_sequences(trainer, step), "skipped",
                  (json_int_t)trainer->skipped, "program", program->name, "version",
                  program->version, "settings", settings_of(trainer), "model", model_of(program),
                  "data", data_of(trainer->data, trainer->data->train.parts), "teacher",
                  teachers_of(trainer->data), "route", route_of(route), "files");
    const struct hrt_best *best = &trainer->best;
    if (best->step)
        json_object_set_new(facts, "best",
                            json_pack("{s:I s:f s:I}", "step", (json_int_t)best->step, "loss",
                                      best->loss, "worse", (json_int_t)best->worse));
    const struct hrt_fssdp *fssdp = trainer->state ? trainer->state->fssdp : NULL;
    json_t *history = fssdp ? hrt_experts_fssdp_history(fssdp) : json_null();
    if (facts && history && json_object_set_new(facts, "experts", history) == 0) return facts;
    json_decref(facts);
    return NULL;
}

static void differ_route(json_t *list, const json_t *there, const json_t *here) {
    const char *was = json_string_value(there), *is = json_string_value(here);
    if (was && is && strcmp(was, is) != 0)
        json_array_append_new(list,
                              json_sprintf("--route was %.200s there and is %.200s here", was, is));
}

json_t *hrt_cli_facts_differ(const json_t *facts, const struct hrt_trainer *trainer,
                             const char *route) {
    json_t *list = json_array();
    json_t *here = hrt_cli_facts(trainer, route, 0);
    const json_t *model = json_object_get(facts, "model");
    hrt_cli_differ_settings(list, json_object_get(facts, "settings"),
                            json_object_get(here, "settings"), model);
    json_t *data =
        data_of(trainer->data, model ? trainer->data->train.parts : trainer->data->files);
    hrt_cli_differ_files(list, "training", json_object_get(facts, "data"), data);
    json_decref(data);
    hrt_cli_differ_files(list, "teacher's", json_object_get(facts, "teacher"),
                         json_object_get(here, "teacher"));
    differ_route(list, json_object_get(facts, "route"), json_object_get(here, "route"));
    if (model) hrt_cli_differ_parts(list, model, json_object_get(here, "model"));
    if (here && list) {
        json_decref(here);
        return list;
    }
    json_decref(here);
    json_decref(list);
    return NULL;
}

// The best evaluation of the run so far; none where the facts make no sense.
static struct hrt_best best_of(const json_t *facts, int64_t step) {
    const json_t *best = json_object_get(facts, "best");
    const struct hrt_best found = {.step = json_integer_value(json_object_get(best, "step")),
                                   .loss = json_number_value(json_object_get(best, "loss")),
                                   .worse = json_integer_value(json_object_get(best, "worse"))};
    const bool sound = found.step >= 1 && found.step <= step && found.worse >= 0 &&
                       found.worse <= step && json_is_number(json_object_get(best, "loss"));
    return sound ? found : (struct hrt_best){0};
}

bool hrt_cli_facts_go_on(const json_t *facts, struct hrt_trainer *trainer,
                         struct hrt_error *error) {
    const json_t *number = json_object_get(facts, "sequences");
    const int64_t step = json_integer_value(json_object_get(facts, "step"));
    const int64_t sequences = json_integer_value(number);
    const int64_t skipped = json_integer_value(json_object_get(facts, "skipped")); // Or 0.
    if (!json_is_integer(number) || sequences < 0 || sequences > INT64_MAX / 2 || step < 1)
        return hrt_fail(error, "'%s' does not say how many sequences have been drawn",
                        HRT_FACTS_FILE);
    hrt_train_trainer_go_on(trainer, step, sequences,
                            skipped >= 0 && skipped <= step ? skipped : 0);
    trainer->best = best_of(facts, step);
    return true;
}

// ---- files

void hrt_cli_facts_note_log(json_t *facts, const struct hrt_jsonl *log) {
    const int64_t bytes = hrt_log_jsonl_bytes(log);
    if (bytes < 0) return;
    json_object_set_new(json_object_get(facts, "files"), log->path, json_integer(bytes));
}

int64_t hrt_cli_facts_log(const json_t *facts, const char *path) {
    const json_t *bytes = json_object_get(json_object_get(facts, "files"), path);
    return json_integer_value(bytes) > 0 ? json_integer_value(bytes) : 0;
}

void hrt_cli_facts_note_records(json_t *facts, const struct hrt_arguments *arguments,
                                const struct hrt_route *route) {
    json_t *records = json_object();
    if (route && route->records_ids && !route->lost_ids)
        json_object_set_new(records, arguments->record_ids, json_integer(route->ids_begun));
    if (route && route->records_loads && !route->lost_loads)
        json_object_set_new(records, arguments->record_loads, json_integer(route->loads_begun));
    json_object_set_new(facts, "records", records);
}

int64_t hrt_cli_facts_record(const json_t *facts, const char *path) {
    const json_t *records = json_object_get(facts, "records");
    if (!facts || !path) return -1;
    if (!records) return access(path, F_OK) == 0 ? 0 : -1;
    const json_t *begun = json_object_get(records, path);
    const int64_t step = json_integer_value(begun);
    const int64_t taken = json_integer_value(json_object_get(facts, "step"));
    return json_is_integer(begun) && step >= 0 && step <= taken ? step : -1;
}
