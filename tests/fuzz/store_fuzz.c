// Parameter files (safetensors) of a small program with a set of experts.
//
// Promises: a refused file has changed no parameter; a refusal says why.
#include <stdlib.h>
#include <string.h>

#include "runtime/experts/experts.h"
#include "runtime/store/weights.h"
#include "tests/fuzz/fuzz.h"

enum { ELEMENTS = 3 * 64 + 2 * 2 * 4 };

static const struct hrt_set set = {
    .name = "sparse", .experts = 2, .topk = 1, .layers = 2, .offset = 3 * 64, .chunk_elements = 4};

static const struct hrt_param params[] = {
    {.symbol = "w",
     .path = "w",
     .rank = 2,
     .dim = {"A", "B"},
     .shape = {3, 5},
     .layers = 1,
     .index_first = -1,
     .trainable = true,
     .layout = HRT_PANELS,
     .rows = 3,
     .columns = 5,
     .elements = 3 * 64,
     .set = -1},
    {.symbol = "sparse.b",
     .path = "layers.{}.sparse.experts.{e}.b",
     .rank = 1,
     .dim = {"C"},
     .shape = {3},
     .layers = 2,
     .index_stride = 1,
     .trainable = true,
     .layout = HRT_ROWS,
     .rows = 1,
     .columns = 3,
     .elements = 3},
};

static const struct hrt_program program = {.name = "fuzz",
                                           .version = "1",
                                           .params = 2,
                                           .param_elements = ELEMENTS,
                                           .param = params,
                                           .sets = 1,
                                           .set = &set};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    float values[ELEMENTS];
    memset(values, 0x7f, sizeof values);
    float before[ELEMENTS];
    memcpy(before, values, sizeof values);
    const struct hrt_placement here = {.program = &program};
    const struct hrt_buffer buffer = {.placement = &here, .values = values};
    struct hrt_error error = {0};
    if (hrt_store_restore(&buffer, fuzz_file(0, data, size), NULL, &error)) return 0;
    if (!*error.text || !error.code) fuzz_broken("a refusal says why");
    if (memcmp(before, values, sizeof values) != 0) fuzz_broken("a refused file changes nothing");
    return 0;
}
