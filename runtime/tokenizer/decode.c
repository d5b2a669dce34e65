// From ids to text, by the decoder of a tokenizer.json.
#include <stdlib.h>

#include "runtime/tokenizer/bytes.h"
#include "runtime/tokenizer/json.h"

// Changes what a token stands for, in `text`; `out` is scratch.
static bool decode_bytes(struct hrt_text *text, struct hrt_text *out) {
    bool known;
    out->bytes = 0;
    if (!hrt_tokenizer_bytes_read(text->at, text->bytes, out, &known)) return false;
    return !known || hrt_tokenizer_text_set(text, out->at, out->bytes);
}

static bool decode_named(struct hrt_text *text) {
    const int byte = hrt_tokenizer_byte_named(text);
    return byte < 0 || hrt_tokenizer_text_set(text, &(char){(char)byte}, 1);
}

static bool decode_replaced(struct hrt_text *text, const char *from, const char *to,
                            struct hrt_text *out) {
    out->bytes = 0;
    return hrt_tokenizer_text_replace(out, text->at, text->bytes, from, to) &&
           hrt_tokenizer_text_set(text, out->at, out->bytes);
}

// The change that one decoder makes to a token.
enum decoding { BYTE_LEVEL, BYTE_FALLBACK, REPLACE };

static bool decode_all(struct hrt_tokenizer *tokenizer, enum decoding decoding, const char *from,
                       const char *to, struct hrt_error *error) {
    struct hrt_text scratch = {0};
    bool enough = true;
    for (int32_t id = 0; enough && id < tokenizer->vocabulary.size; id++) {
        struct hrt_text *text = &tokenizer->decoded[id];
        if (text->bytes == 0) continue;
        enough = decoding == BYTE_LEVEL      ? decode_bytes(text, &scratch)
                 : decoding == BYTE_FALLBACK ? decode_named(text)
                                             : decode_replaced(text, from, to, &scratch);
    }
    free(scratch.at);
    return hrt_enough(enough, error);
}

static bool read_replace(struct hrt_tokenizer *tokenizer, const json_t *json,
                         const struct hrt_place *place, struct hrt_error *error) {
    const char *from =
        json_string_value(json_object_get(json_object_get(json, "pattern"), "String"));
    const char *to = hrt_tokenizer_json_text(json, "content", place, error);
    if (!to) return false;
    if (!from || !*from)
        return hrt_tokenizer_place_fail(place, error,
                                        "of patterns to replace only {\"String\": ...} is known");
    return decode_all(tokenizer, REPLACE, from, to, error);
}

static bool read_strip(struct hrt_tokenizer *tokenizer, const json_t *json,
                       const struct hrt_place *place, struct hrt_error *error) {
    const char *content = json_string_value(json_object_get(json, "content"));
    if (!content || strcmp(content, " ") != 0 ||
        json_integer_value(json_object_get(json, "start")) > 1 ||
        json_integer_value(json_object_get(json, "stop")) != 0)
        return hrt_tokenizer_place_fail(place, error,
                                        "Strip is known for one space at the start only");
    tokenizer->drop_first_space = json_integer_value(json_object_get(json, "start")) == 1;
    return true;
}

static bool read_decoder(struct hrt_tokenizer *tokenizer, const json_t *json,
                         const struct hrt_place *place, bool nested, struct hrt_error *error) {
    if (!json || json_is_null(json)) return true;
    const char *type = hrt_tokenizer_json_text(json, "type", place, error);
    if (!type) return false;
    if (strcmp(type, "Fuse") == 0) return true;
    if (strcmp(type, "ByteLevel") == 0) return decode_all(tokenizer, BYTE_LEVEL, "", "", error);
    if (strcmp(type, "ByteFallback") == 0)
        return decode_all(tokenizer, BYTE_FALLBACK, "", "", error);
    if (strcmp(type, "Replace") == 0) return read_replace(tokenizer, json, place, error);
    if (strcmp(type, "Strip") == 0) return read_strip(tokenizer, json, place, error);
    if (strcmp(type, "Metaspace") == 0) {
        const char *mark = hrt_tokenizer_json_text(json, "replacement", place, error);
        const char *scheme = json_string_value(json_object_get(json, "prepend_scheme"));
        tokenizer->drop_first_space = !scheme || strcmp(scheme, "never") != 0;
        if (mark && !*mark) return hrt_tokenizer_place_fail(place, error, "an empty replacement");
        return mark && decode_all(tokenizer, REPLACE, mark, " ", error);
    }
    if (strcmp(type, "Sequence") == 0 && !nested) {
        const struct hrt_place list = hrt_tokenizer_place_of(place, "decoders");
        const json_t *inner;
        size_t i;
        json_array_foreach(json_object_get(json, "decoders"), i, inner) {
            const struct hrt_place at = hrt_tokenizer_place_at(&list, i);
            if (!read_decoder(tokenizer, inner, &at, true, error)) return false;
        }
        return true;
    }
    return hrt_tokenizer_place_fail(place, error, "no decoder '%.60s' is known", type);
}

bool hrt_tokenizer_load_decoder(struct hrt_tokenizer *tokenizer, const json_t *root,
                                const char *path, struct hrt_error *error) {
    const struct hrt_vocabulary *vocabulary = &tokenizer->vocabulary;
    const struct hrt_place place = {path, "decoder"};
    tokenizer->decoded = calloc((size_t)vocabulary->size, sizeof *tokenizer->decoded);
    bool enough = tokenizer->decoded;
    for (int32_t id = 0; enough && id < vocabulary->size; id++) {
        const struct hrt_text *written = &vocabulary->written[id];
        if (written->at)
            enough = hrt_tokenizer_text_set(&tokenizer->decoded[id], written->at, written->bytes);
    }
    return hrt_enough(enough, error) &&
           read_decoder(tokenizer, json_object_get(root, "decoder"), &place, false, error);
}

int32_t hrt_tokenizer_find(const struct hrt_tokenizer *tokenizer, const char *written) {
    const struct hrt_added_set *sets[] = {&tokenizer->raw, &tokenizer->normalized};
    for (int s = 0; s < 2; s++) {
        for (int i = 0; i < sets[s]->count; i++) {
            const int32_t id = sets[s]->at[i].id;
            if (strcmp(tokenizer->vocabulary.written[id].at, written) == 0) return id;
        }
    }
    return -1;
}

struct hrt_piece hrt_tokenizer_decode(const struct hrt_tokenizer *tokenizer, int32_t id,
                                      bool first) {
    if (id < 0 || id >= tokenizer->vocabulary.size || !tokenizer->decoded[id].at)
        return (struct hrt_piece){.text = ""};
    const struct hrt_text *text = &tokenizer->decoded[id];
    const bool drops = first && tokenizer->drop_first_space && text->bytes && text->at[0] == ' ';
    return (struct hrt_piece){text->at + drops, text->bytes - drops,
                              tokenizer->vocabulary.special[id]};
}
