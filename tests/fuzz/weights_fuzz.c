// Folders of weights of Hugging Face's: the index, a zero byte, and two files one after the other, of which the first has as many
// bytes as the last two of the input say. Two families read them: experts lie one by one, or together in MXFP4.
//
// Promises: a refused folder has changed no parameter; a refusal says why.
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/experts/experts.h"
#include "runtime/store/hf_load.h"
#include "tests/fuzz/fuzz.h"

enum { ELEMENTS = 15 + 3 * 64 + 2 * 2 * 2 * 64 };

static const struct hrt_set set = {.name = "sparse",
                                   .experts = 2,
                                   .topk = 1,
                                   .layers = 2,
                                   .offset = 15 + 3 * 64,
                                   .chunk_elements = 2 * 64};

static const struct hrt_param params[] = {
    {.path = "embed",
     .rank = 2,
     .shape = {3, 5},
     .layers = 1,
     .index_first = -1,
     .rows = 1,
     .columns = 15,
     .elements = 15,
     .set = -1},
    {.path = "head",
     .rank = 2,
     .shape = {3, 5},
     .layers = 1,
     .index_first = -1,
     .layout = HRT_PANELS,
     .rows = 3,
     .columns = 5,
     .elements = 3 * 64,
     .set = -1,
     .offset = 15},
    {.path = "layers.{}.sparse.experts.{e}.w2",
     .rank = 2,
     .shape = {2, 3},
     .layers = 2,
     .index_stride = 1,
     .layout = HRT_PANELS,
     .rows = 2,
     .columns = 3,
     .elements = 2 * 64},
};

static const struct hrt_setting setting[] = {{"names.hf.family", "deepseek_v3"},
                                             {"names.hf.family", "gpt_oss"}};
#define PROGRAM(which)                                                                             \
    {                                                                                              \
        .name = "fuzz", .version = "1", .params = 3, .param_elements = ELEMENTS, .param = params,  \
        .sets = 1, .set = &set, .settings = 1, .setting = &setting[which]                          \
    }
static const struct hrt_program program[] = {PROGRAM(0), PROGRAM(1)};

static char folder[] = "/tmp/hecate-fuzz-XXXXXX";
static const char *const names[] = {"model.safetensors.index.json", "a", "b"};

static void path_of(char path[PATH_MAX], const char *name) {
    snprintf(path, PATH_MAX, "%s/%s", folder, name);
}

static void remove_all(void) {
    for (int i = 0; i < 3; i++) {
        char path[PATH_MAX];
        path_of(path, names[i]);
        unlink(path);
    }
    rmdir(folder);
}

static void write_file(const char *name, const uint8_t *data, size_t size) {
    char path[PATH_MAX];
    path_of(path, name);
    FILE *file = fopen(path, "w");
    if (!file || fwrite(data, 1, size, file) != size || fclose(file) != 0) abort();
}

static void write_folder(const uint8_t *data, size_t size) {
    const uint8_t *nul = memchr(data, '\0', size);
    const size_t length = nul ? (size_t)(nul - data) : size;
    const uint8_t *rest = data + length + (nul != NULL);
    size_t left = size - length - (nul != NULL), first = left;
    if (left >= 2) {
        left -= 2;
        first = (size_t)(rest[left] | rest[left + 1] << 8);
        if (first > left) first = left;
    }
    write_file(names[0], data, length);
    write_file(names[1], rest, first);
    write_file(names[2], rest + first, left - first);
}

static void load(const struct hrt_program *by) {
    float values[ELEMENTS], before[ELEMENTS];
    memset(values, 0x7f, sizeof values);
    memcpy(before, values, sizeof values);
    const struct hrt_placement here = {.program = by};
    const struct hrt_buffer buffer = {.placement = &here, .values = values};
    struct hrt_error error = {0};
    if (hrt_store_hf_load(&buffer, folder, NULL, &error)) return;
    if (!*error.text || !error.code) fuzz_broken("a refusal says why");
    if (memcmp(before, values, sizeof values) != 0) fuzz_broken("a refused folder changes nothing");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static bool made;
    if (!made) {
        made = mkdtemp(folder) && atexit(remove_all) == 0;
        if (!made) abort();
    }
    if (size == 0) return 0;
    write_folder(data, size);
    for (int i = 0; i < 2; i++) load(&program[i]);
    return 0;
}
