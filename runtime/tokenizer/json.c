// Places in a file, and sentences about them.
#include "runtime/tokenizer/json.h"

#include <stdarg.h>
#include <stdio.h>

struct hrt_place hrt_tokenizer_place_of(const struct hrt_place *place, const char *key) {
    struct hrt_place inner = {.path = place->path};
    snprintf(inner.key, sizeof inner.key, "%.60s%s%.60s", place->key, *place->key ? "." : "", key);
    return inner;
}

struct hrt_place hrt_tokenizer_place_at(const struct hrt_place *place, size_t index) {
    struct hrt_place inner = {.path = place->path};
    snprintf(inner.key, sizeof inner.key, "%.100s[%zu]", place->key, index);
    return inner;
}

bool hrt_tokenizer_place_fail(const struct hrt_place *place, struct hrt_error *error,
                              const char *format, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return hrt_fail(error, "'%.300s': %s: %s", place->path, place->key, text);
}

const char *hrt_tokenizer_json_text(const json_t *object, const char *key,
                                    const struct hrt_place *place, struct hrt_error *error) {
    const char *text = json_string_value(json_object_get(object, key));
    const struct hrt_place inner = hrt_tokenizer_place_of(place, key);
    if (!text) hrt_tokenizer_place_fail(&inner, error, "a text is wanted");
    return text;
}

bool hrt_tokenizer_json_flag(const json_t *object, const char *key, bool otherwise) {
    const json_t *flag = json_object_get(object, key);
    return json_is_boolean(flag) ? json_is_true(flag) : otherwise;
}
