// A model's chat template.
#include "tools/prepare/chat.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "files/files.h"
#include "tools/prepare/prepare.h"

struct chat {
    struct jinja *jinja;
    json_t *special; // bos_token and so on: variables of the template.
    char *date;      // Owned; NULL: none.
    uint32_t crc;    // CRC-32 of the template.
};

// Reads a whole file of at most 2 MiB more than `most`. NULL: `error`.
static char *read_file(const char *path, size_t *bytes, struct hrt_error *error) {
    enum { MOST = 64 << 20 };
    const char *why;
    FILE *file = hf_input(path, false, &why);
    if (!file) {
        hrt_fail(error, "cannot open '%s': %s", path, why);
        return NULL;
    }
    char *text = NULL;
    size_t room = 0;
    *bytes = 0;
    bool sound = true;
    for (size_t got = 1; sound && got > 0; *bytes += got) {
        char *grown = realloc(text, room = 2 * *bytes + 4096);
        sound = grown || hrt_fail(error, "out of memory");
        if (!sound) break;
        text = grown;
        got = fread(text + *bytes, 1, room - *bytes - 1, file);
        if (ferror(file)) sound = hrt_fail(error, "cannot read '%s': %s", path, strerror(errno));
        if (*bytes > MOST) sound = hrt_fail(error, "'%s' is too large", path);
    }
    fclose(file);
    if (sound) return text;
    free(text);
    return NULL;
}

// The template in tokenizer_config.json: a text, or the one that is named default. NULL: there is none.
static const json_t *template_in(const json_t *config) {
    const json_t *found = json_object_get(config, "chat_template");
    for (size_t i = 0; json_is_array(found) && i < json_array_size(found); i++) {
        const json_t *named = json_array_get(found, i);
        const char *name = json_string_value(json_object_get(named, "name"));
        if (name && strcmp(name, "default") == 0) return json_object_get(named, "template");
    }
    return json_is_string(found) ? found : NULL;
}

// Texts of the special tokens: KEY_token, as a text or an object with its content.
static bool take_special(struct chat *chat, const json_t *config, struct hrt_error *error) {
    chat->special = json_object();
    bool done = chat->special != NULL;
    json_t *object = (json_t *)(uintptr_t)config;
    for (void *at = json_object_iter(object); done && at; at = json_object_iter_next(object, at)) {
        const char *key = json_object_iter_key(at);
        const size_t length = strlen(key);
        json_t *value = json_object_iter_value(at);
        if (json_is_object(value)) value = json_object_get(value, "content");
        if (length > 6 && strcmp(key + length - 6, "_token") == 0 && json_is_string(value))
            done = json_object_set(chat->special, key, value) == 0;
    }
    return done || hrt_fail(error, "out of memory");
}

static bool parse(struct chat *chat, const char *name, const char *text, size_t bytes,
                  struct hrt_error *error) {
    chat->crc = record_crc(0, text, bytes);
    chat->jinja = jinja_parse(name, text, bytes, error);
    return chat->jinja;
}

static bool load(struct chat *chat, const char *folder, const char *template,
                 struct hrt_error *error) {
    char config_path[PATH_MAX], path[PATH_MAX];
    size_t bytes;
    json_error_t wrong;
    if (snprintf(config_path, PATH_MAX, "%s/tokenizer_config.json", folder) >= PATH_MAX ||
        snprintf(path, PATH_MAX, "%s/chat_template.jinja", folder) >= PATH_MAX)
        return hrt_fail(error, "'%s' is too long a name", folder);
    char *text = read_file(config_path, &bytes, error); // model_max_length is 10^30 in many.
    json_t *config =
        text ? json_loadb(text, bytes, JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, &wrong) : NULL;
    if (text && !config) hrt_fail(error, "'%s', line %d: %s", config_path, wrong.line, wrong.text);
    free(text);
    bool done = config && take_special(chat, config, error);
    const char *file = template ? template : access(path, F_OK) == 0 ? path : NULL;
    if (done && file) {
        text = read_file(file, &bytes, error);
        done = text && parse(chat, file, text, bytes, error);
        free(text);
    } else if (done) {
        const json_t *found = template_in(config);
        if (found)
            done = parse(chat, config_path, json_string_value(found), json_string_length(found),
                         error);
        else
            done = hrt_fail_usage(
                error, "'%s' has no chat template, as base models do; --template=FILE gives one",
                folder);
    }
    json_decref(config);
    return done;
}

struct chat *chat_load(const char *folder, const char *template, const char *date,
                       struct hrt_error *error) {
    struct chat *chat = calloc(1, sizeof *chat);
    if (chat && (!date || (chat->date = strdup(date)))) {
        if (load(chat, folder, template, error)) return chat;
    } else {
        hrt_fail(error, "out of memory");
    }
    chat_free(chat);
    return NULL;
}

void chat_free(struct chat *chat) {
    if (!chat) return;
    jinja_free(chat->jinja);
    json_decref(chat->special);
    free(chat->date);
    free(chat);
}

json_t *chat_record(const struct chat *chat) {
    return json_pack("{s:I, s:s?, s:O}", "template", (json_int_t)chat->crc, "date", chat->date,
                     "special", chat->special);
}

bool chat_marks(const struct chat *chat) {
    return jinja_has_generation(chat->jinja);
}

bool chat_render(const struct chat *chat, const struct conversation *conversation, json_t *messages,
                 size_t count, bool prompt, struct jinja_rendered *out, struct hrt_error *error) {
    json_t *context = json_copy(conversation->context), *first = json_array();
    bool done = context && first;
    for (size_t i = 0; done && i < count; i++)
        done = json_array_append(first, json_array_get(messages, i)) == 0;
    done = done && json_object_set(context, "messages", first) == 0 &&
           json_object_set_new(context, "add_generation_prompt", json_boolean(prompt)) == 0;
    done = done ? jinja_render(chat->jinja, context, chat->date, out, error)
                : hrt_fail(error, "out of memory");
    json_decref(first);
    json_decref(context);
    return done;
}

const json_t *chat_special(const struct chat *chat) {
    return chat->special;
}
