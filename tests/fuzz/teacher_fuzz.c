// Files of teacher entries.
//
// Promises: ids of what is read lie in the vocabulary, log-probabilities are no NaN; a refusal says why.
#include <math.h>
#include <stdlib.h>

#include "runtime/data/teacher.h"
#include "tests/fuzz/fuzz.h"

enum { VOCABULARY = 300 };

static void read_all(const struct hrt_teacher_file *file) {
    struct hrt_error error = {0};
    int32_t *ids = malloc((size_t)file->entries * sizeof *ids);
    float *log_probs = malloc((size_t)file->entries * sizeof *log_probs);
    for (int64_t t = 0; t < file->tokens && t < 100; t++) {
        if (!hrt_data_teacher_file_read(file, t, 1, ids, log_probs, &error)) {
            if (!*error.text || !error.code) fuzz_broken("a refusal says why");
            break;
        }
        for (int64_t k = 0; k < file->entries; k++) {
            if (ids[k] < 0 || ids[k] >= VOCABULARY) fuzz_broken("ids lie in the vocabulary");
            if (!(log_probs[k] < INFINITY)) fuzz_broken("log-probabilities are numbers");
        }
    }
    free(ids);
    free(log_probs);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size) {
    struct hrt_teacher_file file;
    struct hrt_error error = {0};
    if (!hrt_data_teacher_file_open(&file, fuzz_file(0, input, size), VOCABULARY, &error)) {
        if (!*error.text || !error.code) fuzz_broken("a refusal says why");
        return 0;
    }
    read_all(&file);
    hrt_data_teacher_file_close(&file);
    return 0;
}
