// The checked program: look-ups.
#include "lang/program.h"

#include <stdlib.h>
#include <string.h>

#include "lang/scan.h"

const char *const hec_score_words[] = {
#define SCORE(id, word) [HEC_SCORE_##id] = #word,
    HEC_SCORES(SCORE)
#undef SCORE
        [HEC_SCORE_COUNT] = NULL};

const char *hec_role_text(unsigned role) {
    static const char *const texts[] = {NULL, "embedding", "head", "embedding and head", "router"};
    return role < sizeof texts / sizeof *texts ? texts[role] : "of several roles";
}

static int compare_key(const void *key, const void *setting) {
    return strcmp(key, ((const struct hec_setting *)setting)->key);
}

const char *hec_program_setting(const struct hec_program *program, const char *key) {
    const struct hec_setting *found = bsearch(key, program->setting, (size_t)program->settings,
                                              sizeof *program->setting, compare_key);
    return found ? found->value : NULL;
}

int64_t hec_program_count(const struct hec_program *program, const char *key, int64_t otherwise) {
    const char *text = hec_program_setting(program, key);
    int64_t count = 0;
    return text && hec_count_read(text, &count) ? count : otherwise;
}
