// Looking things up in a tokenizer.json that nobody has checked: errors name the file and the key.
#ifndef HECATE_RUNTIME_TOKENIZER_JSON_H
#define HECATE_RUNTIME_TOKENIZER_JSON_H

#include <jansson.h>

#include "runtime/base/error.h"

// Where in the file something stands.
struct hrt_place {
    const char *path; // Path of the file.
    char key[128];    // "pre_tokenizer.pretokenizers[1]"
};

// The place of `key` in an object that stands at `place`; of element `index` of an array.
struct hrt_place hrt_tokenizer_place_of(const struct hrt_place *place, const char *key);
struct hrt_place hrt_tokenizer_place_at(const struct hrt_place *place, size_t index);

// "'FILE': KEY: " and the sentence. False.
bool hrt_tokenizer_place_fail(const struct hrt_place *place, struct hrt_error *error,
                              const char *format, ...) __attribute__((format(printf, 3, 4)));

// A text of an object. NULL, `error`: it is absent or no text.
const char *hrt_tokenizer_json_text(const json_t *object, const char *key,
                                    const struct hrt_place *place, struct hrt_error *error);
// True or false; `otherwise` where it is anything else, or absent.
bool hrt_tokenizer_json_flag(const json_t *object, const char *key, bool otherwise);

#endif
