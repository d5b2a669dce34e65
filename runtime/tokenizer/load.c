// The file, its added tokens and its post_processor; and the end of a tokenizer.
#include <stdlib.h>

#include "files/files.h"
#include "runtime/tokenizer/json.h"
#include "runtime/tokenizer/parts.h"

// ---- added tokens

static int by_bytes(const void *a, const void *b) {
    const struct hrt_added *left = a, *right = b;
    const size_t least = left->bytes < right->bytes ? left->bytes : right->bytes;
    const int order = memcmp(left->written, right->written, least);
    if (order != 0) return order;
    return (left->bytes > right->bytes) - (left->bytes < right->bytes);
}

static bool add_token(struct hrt_tokenizer *tokenizer, const json_t *json,
                      struct hrt_error *error) {
    const json_t *content = json_object_get(json, "content");
    const bool special = hrt_tokenizer_json_flag(json, "special", false);
    const bool normalized = hrt_tokenizer_json_flag(json, "normalized", !special);
    struct hrt_added_set *set = normalized ? &tokenizer->normalized : &tokenizer->raw;
    const char *text = json_string_value(content);
    size_t bytes = json_string_length(content);
    struct hrt_text scratch[2] = {0};
    bool enough =
        !normalized || hrt_tokenizer_normalize(&tokenizer->normalizer, &text, &bytes, scratch);
    if (enough && bytes > 0) {
        struct hrt_added *added = &set->at[set->count];
        *added = (struct hrt_added){
            .written = malloc(bytes + 1),
            .bytes = bytes,
            .id = (int32_t)json_integer_value(json_object_get(json, "id")),
            .single_word = hrt_tokenizer_json_flag(json, "single_word", false),
            .lstrip = hrt_tokenizer_json_flag(json, "lstrip", false),
            .rstrip = hrt_tokenizer_json_flag(json, "rstrip", false),
        };
        enough = added->written;
        if (enough) {
            memcpy(added->written, text, bytes);
            added->written[bytes] = '\0';
            set->begins[(unsigned char)text[0]] = true;
            set->count++;
        }
    }
    for (int i = 0; i < 2; i++) free(scratch[i].at);
    return hrt_enough(enough, error);
}

static bool load_added(struct hrt_tokenizer *tokenizer, const json_t *root,
                       struct hrt_error *error) {
    const json_t *tokens = json_object_get(root, "added_tokens");
    struct hrt_added_set *sets[] = {&tokenizer->raw, &tokenizer->normalized};
    const json_t *token;
    size_t i;
    for (i = 0; i < 2; i++) {
        sets[i]->at = calloc(json_array_size(tokens) + 1, sizeof *sets[i]->at);
        if (!hrt_enough(sets[i]->at, error)) return false;
    }
    json_array_foreach(tokens, i, token) {
        if (!add_token(tokenizer, token, error)) return false;
    }
    for (i = 0; i < 2; i++)
        qsort(sets[i]->at, (size_t)sets[i]->count, sizeof *sets[i]->at, by_bytes);
    tokenizer->word = hrt_tokenizer_pattern_create(
        "[\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\p{Join_Control}]", error);
    tokenizer->space = hrt_tokenizer_pattern_create("\\s", error);
    return tokenizer->word && tokenizer->space;
}

// ---- the frame

static bool add_frame(struct hrt_ids *ids, const json_t *list, const struct hrt_place *place,
                      int32_t size, struct hrt_error *error) {
    const json_t *id;
    size_t i;
    if (json_array_size(list) == 0)
        return hrt_tokenizer_place_fail(place, error, "a special token without ids");
    json_array_foreach(list, i, id) {
        const json_int_t value = json_integer_value(id);
        if (!json_is_integer(id) || value < 0 || value >= size)
            return hrt_tokenizer_place_fail(place, error, "an id that is nobody's");
        if (!hrt_enough(hrt_tokenizer_grow(&ids->at, &ids->room, ids->count + 1, sizeof *ids->at),
                        error))
            return false;
        ids->at[ids->count++] = (int32_t)value;
    }
    return true;
}

static bool read_template(struct hrt_tokenizer *tokenizer, const json_t *json,
                          const struct hrt_place *place, struct hrt_error *error) {
    const json_t *item, *tokens = json_object_get(json, "special_tokens");
    struct hrt_ids *side = &tokenizer->before;
    size_t i;
    json_array_foreach(json_object_get(json, "single"), i, item) {
        if (json_object_get(item, "Sequence")) {
            side = &tokenizer->behind;
            continue;
        }
        const char *name =
            json_string_value(json_object_get(json_object_get(item, "SpecialToken"), "id"));
        const json_t *token = name ? json_object_get(tokens, name) : NULL;
        if (!add_frame(side, json_object_get(token, "ids"), place, tokenizer->vocabulary.size,
                       error))
            return false;
    }
    return true;
}

static bool read_frame(struct hrt_tokenizer *tokenizer, const json_t *json,
                       const struct hrt_place *place, bool nested, struct hrt_error *error) {
    if (!json || json_is_null(json)) return true;
    const char *type = hrt_tokenizer_json_text(json, "type", place, error);
    if (!type) return false;
    if (strcmp(type, "ByteLevel") == 0) return true;
    if (strcmp(type, "TemplateProcessing") == 0)
        return read_template(tokenizer, json, place, error);
    if (strcmp(type, "Sequence") == 0 && !nested) {
        const struct hrt_place list = hrt_tokenizer_place_of(place, "processors");
        const json_t *inner;
        size_t i;
        json_array_foreach(json_object_get(json, "processors"), i, inner) {
            const struct hrt_place at = hrt_tokenizer_place_at(&list, i);
            if (!read_frame(tokenizer, inner, &at, true, error)) return false;
        }
        return true;
    }
    return hrt_tokenizer_place_fail(place, error, "no post-processor '%.60s' is known", type);
}

static bool load_frame(struct hrt_tokenizer *tokenizer, const json_t *root, const char *path,
                       struct hrt_error *error) {
    const struct hrt_place place = {path, "post_processor"};
    return read_frame(tokenizer, json_object_get(root, "post_processor"), &place, false, error);
}

// ---- the file

static json_t *read_json(const char *path, struct hrt_error *error) {
    const char *why;
    json_error_t wrong;
    FILE *file = hf_input(path, true, &why);
    if (!file) {
        hrt_fail(error, "cannot open '%.300s': %s", path, why);
        return NULL;
    }
    json_t *root = json_loadf(file, 0, &wrong);
    if (!root)
        hrt_fail(error, "'%.300s', line %d, column %d: %s", path, wrong.line, wrong.column,
                 wrong.text);
    fclose(file);
    return root;
}

static bool load(struct hrt_tokenizer *tokenizer, const json_t *root, const char *path,
                 struct hrt_error *error) {
    if (!json_is_object(root) || !json_is_object(json_object_get(root, "model")))
        return hrt_fail(error, "'%.300s' is no tokenizer.json: it has no model", path);
    return hrt_tokenizer_load_rules(tokenizer, root, path, error) &&
           hrt_tokenizer_load_vocabulary(tokenizer, root, path, error) &&
           hrt_tokenizer_load_model(tokenizer, root, path, error) &&
           load_added(tokenizer, root, error) &&
           hrt_tokenizer_load_decoder(tokenizer, root, path, error) &&
           load_frame(tokenizer, root, path, error);
}

struct hrt_tokenizer *hrt_tokenizer_load(const char *path, struct hrt_error *error) {
    json_t *root = read_json(path, error);
    if (!root) return NULL;
    struct hrt_tokenizer *tokenizer = calloc(1, sizeof *tokenizer);
    const bool loaded = hrt_enough(tokenizer, error) && load(tokenizer, root, path, error);
    json_decref(root);
    if (loaded) return tokenizer;
    hrt_tokenizer_free(tokenizer);
    return NULL;
}

static void free_rules(struct hrt_rules *rules) {
    for (int i = 0; i < rules->count; i++) {
        free(rules->at[i].from);
        free(rules->at[i].to);
        hrt_tokenizer_pattern_free(rules->at[i].pattern);
    }
    free(rules->at);
}

static void free_added(struct hrt_added_set *set) {
    for (int i = 0; i < set->count; i++) free(set->at[i].written);
    free(set->at);
}

void hrt_tokenizer_free(struct hrt_tokenizer *tokenizer) {
    if (!tokenizer) return;
    for (int32_t id = 0; id < tokenizer->vocabulary.size; id++) {
        if (tokenizer->vocabulary.written) free(tokenizer->vocabulary.written[id].at);
        if (tokenizer->decoded) free(tokenizer->decoded[id].at);
    }
    free(tokenizer->vocabulary.written);
    free(tokenizer->vocabulary.special);
    free(tokenizer->decoded);
    hrt_tokenizer_names_free(&tokenizer->model.names);
    hrt_tokenizer_merges_free(&tokenizer->model.merges);
    free_rules(&tokenizer->normalizer);
    free_rules(&tokenizer->splitter);
    free_added(&tokenizer->raw);
    free_added(&tokenizer->normalized);
    hrt_tokenizer_pattern_free(tokenizer->word);
    hrt_tokenizer_pattern_free(tokenizer->space);
    free(tokenizer->before.at);
    free(tokenizer->behind.at);
    free(tokenizer);
}

int32_t hrt_tokenizer_size(const struct hrt_tokenizer *tokenizer) {
    return tokenizer->vocabulary.size;
}
