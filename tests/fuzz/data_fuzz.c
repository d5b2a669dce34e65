// Files of training tokens. The first byte chooses the format, the objective and the vocabulary, and whether there are
// weights: the next two bytes then say how many of those behind them these have, and the rest is the file of tokens.
//
// Promises: every token that a sequence holds lies in the vocabulary; a refusal says why.
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/data/data.h"
#include "tests/fuzz/fuzz.h"

enum { POSITIONS = 7 };

static void check_tokens(const int32_t *ids, const int32_t *targets, int64_t vocabulary) {
    for (int i = 0; i < POSITIONS; i++) {
        if (ids[i] < 0 || ids[i] >= vocabulary) fuzz_broken("ids lie in the vocabulary");
        if (targets[i] < -1 || targets[i] >= vocabulary) fuzz_broken("targets do, or are none");
    }
}

static void check_refusal(const struct hrt_error *error) {
    if (!*error->text || !error->code) fuzz_broken("a refusal says why");
}

static void read_all(const struct hrt_data *data, int64_t vocabulary) {
    struct hrt_error error = {0};
    int32_t ids[POSITIONS], targets[POSITIONS];
    for (uint64_t n = 0; n < 4 && data->train.starts; n++) {
        if (!hrt_data_draw(data, 1, n, ids, targets, &error)) return check_refusal(&error);
        check_tokens(ids, targets, vocabulary);
    }
    for (int64_t n = 0; n < 4 && n < data->validation.windows; n++) {
        if (!hrt_data_window(data, n, ids, targets, &error)) return check_refusal(&error);
        check_tokens(ids, targets, vocabulary);
    }
}

static void write_file(const char *path, const void *data, size_t size) {
    FILE *file = fopen(path, "w");
    if (!file || fwrite(data, 1, size, file) != size || fclose(file) != 0) abort();
}

// A file with weights beside it, in a folder of their own.
static const char *write_weighted(const uint8_t *input, size_t size) {
    static char folder[] = "/tmp/hecate-fuzz-XXXXXX", path[PATH_MAX], weights[PATH_MAX];
    size_t count = (size_t)(input[0] | input[1] << 8);
    if (!*path) {
        if (!mkdtemp(folder)) abort();
        snprintf(path, sizeof path, "%s/x", folder);
        snprintf(weights, sizeof weights, "%s/x.weights", folder);
    }
    if (count > size - 2) count = size - 2;
    write_file(weights, input + 2, count);
    write_file(path, input + 2 + count, size - 2 - count);
    return path;
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size) {
    static const int64_t vocabularies[] = {2, 256, 60000, 70000};
    if (size < 1) return 0;
    const int64_t vocabulary = vocabularies[input[0] >> 2 & 3];
    const bool weighted = input[0] & 16 && size >= 3;
    const char *path =
        weighted ? write_weighted(input + 1, size - 1) : fuzz_file(0, input + 1, size - 1);
    const struct hrt_data_request request = {
        .train = &path,
        .trains = 1,
        .format = input[0] & 1 ? HRT_DATA_FORMAT_llmc : HRT_DATA_FORMAT_bytes,
        .positions = POSITIONS,
        .vocabulary = vocabulary,
        .mask_rate = input[0] & 2 ? 0.3 : 0,
    };
    struct hrt_data data;
    struct hrt_error error = {0};
    if (!hrt_data_open(&data, &request, &error)) {
        check_refusal(&error);
        return 0;
    }
    read_all(&data, vocabulary);
    hrt_data_close(&data);
    return 0;
}
