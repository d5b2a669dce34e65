// eos_token_id of generation_config.json and config.json.
#include "runtime/sample/ends.h"

#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/json.h"

static bool take(const json_t *value, int64_t vocabulary, struct hrt_ids *ends, const char *path,
                 struct hrt_error *error) {
    const size_t count = json_is_array(value) ? json_array_size(value) : 1;
    ends->at = malloc((count ? count : 1) * sizeof *ends->at);
    if (!ends->at) return hrt_fail(error, "out of memory");
    for (size_t i = 0; i < count; i++) {
        const json_t *id = json_is_array(value) ? json_array_get(value, i) : value;
        if (!json_is_integer(id) || json_integer_value(id) < 0 ||
            json_integer_value(id) >= vocabulary)
            return hrt_fail(error, "'%s': eos_token_id is no id below the vocabulary of %" PRId64,
                            path, vocabulary);
        ends->at[ends->count++] = (int32_t)json_integer_value(id);
    }
    return true;
}

static bool read_file(const char *path, int64_t vocabulary, struct hrt_ids *ends,
                      struct hrt_error *error) {
    json_t *json = hrt_base_json_read(path, error);
    const json_t *value = json_object_get(json, "eos_token_id");
    const bool read =
        json && (!value || json_is_null(value) || take(value, vocabulary, ends, path, error));
    json_decref(json);
    return read;
}

bool hrt_sample_ends_read(const char *tokenizer, int64_t vocabulary, struct hrt_ids *ends,
                          struct hrt_error *error) {
    static const char *const names[] = {"generation_config.json", "config.json"};
    const char *slash = strrchr(tokenizer, '/');
    const int folder = slash ? (int)(slash + 1 - tokenizer) : 0;
    for (int i = 0; i < 2 && !ends->count; i++) {
        char path[PATH_MAX];
        if (snprintf(path, sizeof path, "%.*s%s", folder, tokenizer, names[i]) >= PATH_MAX)
            return true; // No file has so long a name.
        if (access(path, F_OK) == 0 && !read_file(path, vocabulary, ends, error)) return false;
    }
    return true;
}
