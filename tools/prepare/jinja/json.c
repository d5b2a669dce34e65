// JSON to values and back, as Python's json.dumps with ensure_ascii=False writes it.
#include <stdio.h>
#include <string.h>

#include "tools/prepare/jinja/inside.h"

enum { DEPTH = 200 };

static struct value of_array(struct run *run, const json_t *json) {
    const size_t count = json_array_size(json);
    struct value list = value_list(run, count);
    for (size_t i = 0; i < count && !run->failed; i++)
        list_add(run, list.list, value_of_json(run, json_array_get(json, i)));
    return list;
}

static struct value of_object(struct run *run, const json_t *json) {
    struct map *map = run_take(run, sizeof *map);
    if (!map) return value_none();
    *map = (struct map){0};
    json_t *object = (json_t *)(uintptr_t)json; // Its iterators take no constant one.
    for (void *at = json_object_iter(object); at && !run->failed;
         at = json_object_iter_next(object, at)) {
        const char *key = json_object_iter_key(at);
        const size_t bytes = json_object_iter_key_len(at);
        map_set(run, map, value_text(key, bytes), value_of_json(run, json_object_iter_value(at)));
    }
    return (struct value){.kind = VALUE_MAP, .map = map};
}

struct value value_of_json(struct run *run, const json_t *json) {
    struct value value = value_none();
    if (run->depth++ > DEPTH) run_fail(run, "JSON is nested more than %d deep", DEPTH);
    if (run->failed)
        value = value_none();
    else if (json_is_boolean(json))
        value = value_boolean(json_is_true(json));
    else if (json_is_integer(json))
        value = value_integer(json_integer_value(json));
    else if (json_is_real(json))
        value = (struct value){.kind = VALUE_REAL, .real = json_real_value(json)};
    else if (json_is_string(json))
        value = value_text(json_string_value(json), json_string_length(json));
    else if (json_is_array(json))
        value = of_array(run, json);
    else if (json_is_object(json))
        value = of_object(run, json);
    run->depth--;
    return value;
}

struct dump {
    struct run *run;
    struct buffer out;
    int64_t indent; // -1: all in one line.
};

static void put(struct dump *dump, const char *text) {
    buffer_add(dump->run, &dump->out, text, strlen(text));
}

static void put_text(struct dump *dump, struct text text) {
    static const char from[] = "\"\\\n\r\t\f\b", *const to[] = {"\\\"", "\\\\", "\\n", "\\r",
                                                                "\\t",  "\\f",  "\\b"};
    put(dump, "\"");
    size_t plain = 0; // Where what needs nothing began.
    for (size_t i = 0; i < text.bytes && run_pay(dump->run, 1); i++) {
        const unsigned char c = (unsigned char)text.at[i];
        const char *known = c ? strchr(from, c) : NULL;
        char code[8];
        if (!known && c >= ' ') continue;
        buffer_add(dump->run, &dump->out, text.at + plain, i - plain);
        snprintf(code, sizeof code, "\\u%04x", c);
        put(dump, known ? to[known - from] : code);
        plain = i + 1;
    }
    buffer_add(dump->run, &dump->out, text.at + plain, text.bytes - plain);
    put(dump, "\"");
}

static void put_line(struct dump *dump, int level) {
    if (dump->indent < 0) return;
    put(dump, "\n");
    for (int64_t i = 0; i < dump->indent * level && !dump->run->failed; i++) put(dump, " ");
}

static void put_value(struct dump *dump, const struct value *value, int level);

static void put_key(struct dump *dump, const struct value *key) {
    if (key->kind != VALUE_TEXT)
        run_fail(dump->run, "tojson of a mapping with %s as a key is not supported",
                 value_kind_name(key));
    else
        put_text(dump, key->text);
    put(dump, ": ");
}

static void put_all(struct dump *dump, const struct value *value, int level) {
    const bool map = value->kind == VALUE_MAP;
    const size_t count = map ? value->map->count : value->list->count;
    put(dump, map ? "{" : "[");
    for (size_t i = 0; i < count && !dump->run->failed; i++) {
        if (i) put(dump, dump->indent < 0 ? ", " : ",");
        put_line(dump, level + 1);
        if (map) put_key(dump, &value->map->at[i].key);
        put_value(dump, map ? &value->map->at[i].value : &value->list->at[i], level + 1);
    }
    if (count) put_line(dump, level);
    put(dump, map ? "}" : "]");
}

static void put_value(struct dump *dump, const struct value *value, int level) {
    if (level > DEPTH) run_fail(dump->run, "tojson of more than %d levels", DEPTH);
    if (!run_pay(dump->run, 1)) return;
    if (value->kind == VALUE_TEXT) {
        put_text(dump, value->text);
    } else if (value->kind == VALUE_LIST || value->kind == VALUE_MAP) {
        put_all(dump, value, level);
    } else if (value->kind == VALUE_NONE) {
        put(dump, "null");
    } else if (value->kind == VALUE_BOOLEAN) {
        put(dump, value->boolean ? "true" : "false");
    } else if (value_is_number(value)) {
        const struct text text = value_print(dump->run, value);
        buffer_add(dump->run, &dump->out, text.at, text.bytes);
    } else {
        run_fail(dump->run, "tojson of %s", value_kind_name(value));
    }
}

struct value value_dump(struct run *run, const struct value *value, int64_t indent) {
    struct dump dump = {.run = run, .indent = indent};
    put_value(&dump, value, 0);
    return buffer_value(&dump.out);
}
