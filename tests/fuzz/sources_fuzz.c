// Inputs of hecate-data; the first byte chooses the kind.
//
// Promises: ids are not negative; a refusal says why.
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"
#include "tools/prepare/prepare.h"

static void read_megatron(const uint8_t *input, size_t size) {
    static const uint8_t tokens[64] = {1, 0, 2, 0, 3, 0, 255, 255, 255, 255};
    struct hrt_error error = {0};
    struct hrt_ids ids = {0};
    const char *bin = fuzz_file(1, tokens, sizeof tokens);
    struct megatron *megatron = megatron_open(fuzz_file(0, input, size), bin, &error);
    if (!megatron && !*error.text) fuzz_broken("a refusal says why");
    for (int64_t i = 0; megatron && i < megatron_documents(megatron) && i < 100; i++) {
        if (!megatron_read(megatron, i, &ids, &error)) {
            if (!*error.text) fuzz_broken("a refusal says why");
            break;
        }
        for (size_t n = 0; n < ids.count; n++) {
            if (ids.at[n] < 0) fuzz_broken("ids are not negative");
        }
    }
    free(ids.at);
    megatron_close(megatron);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size) {
    static const enum kind kinds[] = {KIND_JSONL, KIND_LINES, KIND_TEXT, KIND_JSON};
    struct hrt_error error = {0};
    struct document document = {0};
    if (size < 1) return 0;
    if (input[0] % 8 == 3) {
        read_megatron(input + 1, size - 1);
        return 0;
    }
    struct source *source = source_open(fuzz_file(0, input + 1, size - 1), kinds[input[0] % 4],
                                        "text", input[0] & 8, &error);
    if (!source && !*error.text) fuzz_broken("a refusal says why");
    int got = source ? 1 : 0;
    while (got == 1) got = source_next(source, &document, &error);
    if (got < 0 && !*error.text) fuzz_broken("a refusal says why");
    source_close(source);
    free(document.text);
    free(document.ids.at);
    return 0;
}
