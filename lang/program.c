// The checked program: look-ups.
#include "lang/program.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lang/scan.h"
#include "lang/settings.h"

const char *const hec_score_words[] = {
#define HK_SCORE(ID, word, ...) #word,
#define HK_SCORE_OF_ALL HK_SCORE
#include "kernels/router/scores.def"
#undef HK_SCORE
#undef HK_SCORE_OF_ALL
    NULL,
};

int64_t hec_path_length(const char *path, int64_t layer, int64_t expert) {
    char digits[32];
    int64_t length = 0;
    while (*path) {
        const bool of_layer = !strncmp(path, "{}", 2), of_expert = !strncmp(path, "{e}", 3);
        if (of_layer || of_expert)
            length += snprintf(digits, sizeof digits, "%" PRId64, of_layer ? layer : expert);
        else
            length++;
        path += of_layer ? 2 : of_expert ? 3 : 1;
    }
    return length;
}

const char *hec_role_text(unsigned role) {
    static const char *const texts[] = {NULL, "embedding", "head", "embedding and head", "router"};
    return role < sizeof texts / sizeof *texts ? texts[role] : "of several roles";
}

static int compare_key(const void *key, const void *setting) {
    return strcmp(key, ((const struct hec_setting *)setting)->key);
}

const struct hec_setting *hec_program_setting(const struct hec_program *program, enum hec_key key) {
    return bsearch(hec_setting_rows[key].key, program->setting, (size_t)program->settings,
                   sizeof *program->setting, compare_key);
}

const char *hec_program_text(const struct hec_program *program, enum hec_key key) {
    const struct hec_setting *setting = hec_program_setting(program, key);
    return setting ? setting->value : NULL;
}

int64_t hec_program_count(const struct hec_program *program, enum hec_key key, int64_t otherwise) {
    const char *text = hec_program_text(program, key);
    int64_t count = 0;
    return text && hec_count_read(text, &count) ? count : otherwise;
}
