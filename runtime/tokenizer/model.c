// The model of a tokenizer.json: vocabulary and merges.
#include <stdlib.h>

#include "runtime/tokenizer/bytes.h"
#include "runtime/tokenizer/json.h"

enum { ID_MOST = (1 << 22) - 1 };

static bool note_id(struct hrt_tokenizer *tokenizer, const json_t *id,
                    const struct hrt_place *place, struct hrt_error *error) {
    if (!json_is_integer(id) || json_integer_value(id) < 0 || json_integer_value(id) > ID_MOST)
        return hrt_tokenizer_place_fail(place, error, "an id from 0 to %d is wanted", ID_MOST);
    const int32_t size = (int32_t)json_integer_value(id) + 1;
    if (size > tokenizer->vocabulary.size) tokenizer->vocabulary.size = size;
    return true;
}

static bool write_down(struct hrt_vocabulary *vocabulary, const char *text, size_t bytes,
                       const json_t *id, struct hrt_error *error) {
    return hrt_enough(
        hrt_tokenizer_text_set(&vocabulary->written[json_integer_value(id)], text, bytes), error);
}

bool hrt_tokenizer_load_vocabulary(struct hrt_tokenizer *tokenizer, const json_t *root,
                                   const char *path, struct hrt_error *error) {
    struct hrt_vocabulary *vocabulary = &tokenizer->vocabulary;
    const struct hrt_place names = {path, "model.vocab"}, added = {path, "added_tokens"};
    json_t *vocab = json_object_get(json_object_get(root, "model"), "vocab");
    const json_t *tokens = json_object_get(root, "added_tokens"), *token;
    const char *type = json_string_value(json_object_get(json_object_get(root, "model"), "type"));
    const char *name;
    json_t *id;
    size_t i, length;
    if (type && strcmp(type, "BPE") != 0) {
        const struct hrt_place place = {path, "model.type"};
        return hrt_tokenizer_place_fail(&place, error, "only BPE is known, not '%.60s'", type);
    }
    if (!json_is_object(vocab))
        return hrt_tokenizer_place_fail(&names, error, "an object is wanted");
    json_object_foreach(vocab, name, id) {
        const struct hrt_place at = hrt_tokenizer_place_of(&names, name);
        if (!note_id(tokenizer, id, &at, error)) return false;
    }
    json_array_foreach(tokens, i, token) {
        const struct hrt_place at = hrt_tokenizer_place_at(&added, i),
                               key = hrt_tokenizer_place_of(&at, "id");
        if (!hrt_tokenizer_json_text(token, "content", &at, error) ||
            !note_id(tokenizer, json_object_get(token, "id"), &key, error))
            return false;
    }
    if (vocabulary->size == 0)
        return hrt_tokenizer_place_fail(&names, error, "%s", "no token is in it");
    vocabulary->written = calloc((size_t)vocabulary->size, sizeof *vocabulary->written);
    vocabulary->special = calloc((size_t)vocabulary->size, sizeof *vocabulary->special);
    if (!hrt_enough(vocabulary->written && vocabulary->special, error)) return false;
    json_object_keylen_foreach(vocab, name, length, id) {
        if (!write_down(vocabulary, name, length, id, error)) return false;
    }
    json_array_foreach(tokens, i, token) {
        const json_t *content = json_object_get(token, "content");
        id = json_object_get(token, "id");
        if (!write_down(vocabulary, json_string_value(content), json_string_length(content), id,
                        error))
            return false;
        vocabulary->special[json_integer_value(id)] =
            hrt_tokenizer_json_flag(token, "special", false);
    }
    return true;
}

// ---- merges

// The two names of a merge: ["a", "b"] or "a b".
static bool names_of(const json_t *merge, const char *name[2], size_t bytes[2]) {
    if (json_is_array(merge) && json_array_size(merge) == 2) {
        for (size_t i = 0; i < 2; i++) {
            name[i] = json_string_value(json_array_get(merge, i));
            bytes[i] = json_string_length(json_array_get(merge, i));
        }
        return name[0] && name[1];
    }
    const char *text = json_string_value(merge), *space = text ? strchr(text, ' ') : NULL;
    if (!space || strchr(space + 1, ' ')) return false;
    name[0] = text;
    bytes[0] = (size_t)(space - text);
    name[1] = space + 1;
    bytes[1] = strlen(space + 1);
    return true;
}

// Notes that a merge joins the characters where its two names meet.
static void note_join(struct hrt_model *model, const char *const name[2], const size_t bytes[2]) {
    if (bytes[0] == 0 || bytes[1] == 0) return;
    const unsigned back = hrt_back_class(name[0], bytes[0]),
                   front = hrt_front_class(name[1], bytes[1]);
    model->joins[back][front / 64] |= (uint64_t)1 << front % 64;
    for (int i = 0; i < 2; i++) { // A byte does not tell its character.
        const struct hrt_text text = {(char *)name[i], bytes[i], 0};
        if (hrt_tokenizer_byte_named(&text) >= 0) model->cuts = false;
    }
}

static bool read_merges(struct hrt_tokenizer *tokenizer, const json_t *merges,
                        const struct hrt_names *names, const char *path, struct hrt_error *error) {
    const struct hrt_place list = {path, "model.merges"};
    struct hrt_text joined = {0};
    const json_t *merge;
    size_t i;
    bool sound =
        json_is_array(merges) || hrt_tokenizer_place_fail(&list, error, "an array is wanted");
    sound = sound && hrt_enough(hrt_tokenizer_merges_create(&tokenizer->model.merges,
                                                            json_array_size(merges)),
                                error);
    for (i = 0; sound && i < json_array_size(merges); i++) {
        const struct hrt_place place = hrt_tokenizer_place_at(&list, i);
        const char *name[2];
        size_t bytes[2];
        merge = json_array_get(merges, i);
        if (!names_of(merge, name, bytes)) {
            sound = hrt_tokenizer_place_fail(&place, error, "two tokens are wanted");
            break;
        }
        sound = hrt_enough(hrt_tokenizer_text_set(&joined, name[0], bytes[0]) &&
                               hrt_tokenizer_text_append(&joined, name[1], bytes[1]),
                           error);
        if (!sound) break;
        const int32_t left = hrt_tokenizer_names_find(names, name[0], bytes[0]),
                      right = hrt_tokenizer_names_find(names, name[1], bytes[1]),
                      id = hrt_tokenizer_names_find(names, joined.at, joined.bytes);
        if (left < 0 || right < 0 || id < 0)
            sound = hrt_tokenizer_place_fail(&place, error, "'%.60s' is not in the vocabulary",
                                             left < 0 || right < 0 ? name[left >= 0] : joined.at);
        else
            hrt_tokenizer_merges_add(&tokenizer->model.merges, left, right, (int32_t)i, id);
        note_join(&tokenizer->model, (const char *const *)name, bytes);
    }
    free(joined.at);
    return sound;
}

// ---- symbols

// Reads the bytes that the texts of a byte-level vocabulary stand for; words are looked up by them.
static bool read_bytes(struct hrt_tokenizer *tokenizer, struct hrt_error *error) {
    struct hrt_model *model = &tokenizer->model;
    struct hrt_text bytes = {0};
    bool enough = true;
    for (int32_t id = 0; enough && id < tokenizer->vocabulary.size; id++) {
        const struct hrt_text *written = &tokenizer->vocabulary.written[id];
        bool known;
        bytes.bytes = 0;
        if (written->bytes == 0) continue;
        enough = hrt_tokenizer_bytes_read(written->at, written->bytes, &bytes, &known);
        if (!enough || !known) continue;
        if (bytes.bytes == 1) model->byte[(unsigned char)bytes.at[0]] = id;
        enough = hrt_tokenizer_names_add(&model->names, bytes.at, bytes.bytes, id);
    }
    free(bytes.at);
    return hrt_enough(enough, error);
}

static bool read_settings(struct hrt_tokenizer *tokenizer, const json_t *json,
                          const struct hrt_names *names, const char *path,
                          struct hrt_error *error) {
    struct hrt_model *model = &tokenizer->model;
    const struct hrt_place place = {path, "model"};
    const char *const affixes[] = {"continuing_subword_prefix", "end_of_word_suffix"};
    for (int i = 0; i < 2; i++) {
        const char *affix = json_string_value(json_object_get(json, affixes[i]));
        if (affix && *affix)
            return hrt_tokenizer_place_fail(&place, error, "%s other than none is not known",
                                            affixes[i]);
    }
    if (json_number_value(json_object_get(json, "dropout")) != 0)
        return hrt_tokenizer_place_fail(&place, error, "dropout other than none is not known");
    model->byte_fallback = hrt_tokenizer_json_flag(json, "byte_fallback", false);
    model->fuse_unknown = hrt_tokenizer_json_flag(json, "fuse_unk", false);
    model->whole_words = hrt_tokenizer_json_flag(json, "ignore_merges", false);
    const char *unknown = json_string_value(json_object_get(json, "unk_token"));
    model->unknown = unknown ? hrt_tokenizer_names_find(names, unknown, strlen(unknown)) : -1;
    if (unknown && model->unknown < 0)
        return hrt_tokenizer_place_fail(&place, error, "unk_token '%.60s' is not in the vocabulary",
                                        unknown);
    return true;
}

bool hrt_tokenizer_load_model(struct hrt_tokenizer *tokenizer, const json_t *root, const char *path,
                              struct hrt_error *error) {
    struct hrt_model *model = &tokenizer->model;
    const json_t *json = json_object_get(root, "model");
    json_t *vocab = json_object_get(json, "vocab"), *id;
    const size_t count = json_object_size(vocab);
    struct hrt_names names = {0};
    const char *name;
    size_t length;
    bool enough = hrt_tokenizer_names_create(&names, count) &&
                  hrt_tokenizer_names_create(&model->names, (size_t)tokenizer->vocabulary.size);
    json_object_keylen_foreach(vocab, name, length, id) {
        enough = enough &&
                 hrt_tokenizer_names_add(&names, name, length, (int32_t)json_integer_value(id));
    }
    for (int i = 0; i < 256; i++) model->byte[i] = -1;
    model->cuts = true;
    bool sound = hrt_enough(enough, error) && read_settings(tokenizer, json, &names, path, error) &&
                 read_merges(tokenizer, json_object_get(json, "merges"), &names, path, error);
    if (sound && model->byte_level) {
        sound = read_bytes(tokenizer, error);
        hrt_tokenizer_names_free(&names);
    } else {
        hrt_tokenizer_names_free(&model->names);
        model->names = names;
        for (int32_t i = 0; sound && i < tokenizer->vocabulary.size; i++) {
            const int byte = hrt_tokenizer_byte_named(&tokenizer->vocabulary.written[i]);
            if (byte >= 0) model->byte[byte] = i;
        }
    }
    for (int i = 0; sound && i < 256; i++)
        model->single[i] = model->byte_level
                               ? model->byte[i]
                               : hrt_tokenizer_names_find(&model->names, &(char){(char)i}, 1);
    // Unknown characters that become one are joined by no merge.
    bool all = model->byte_fallback;
    for (int i = 0; i < 256; i++) all &= model->byte[i] >= 0;
    const bool fuses = model->fuse_unknown && model->unknown >= 0 && !all;
    model->cuts &= !model->byte_level && !model->whole_words && !fuses;
    return sound;
}
