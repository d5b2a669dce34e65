// A tokenizer.json, a NUL, a text.
//
// Promises: ids lie in the vocabulary; words that an encoder has seen change nothing; a refusal says why.
#include <stdlib.h>
#include <string.h>

#include "runtime/tokenizer/tokenizer.h"
#include "tests/fuzz/fuzz.h"

static void encode(const struct hrt_tokenizer *tokenizer, const char *text, size_t bytes) {
    struct hrt_error error = {0};
    struct hrt_ids ids = {0}, again = {0};
    struct hrt_encoder *encoder = hrt_tokenizer_encoder_create(tokenizer, &error);
    if (!encoder) fuzz_broken("there is memory for an encoder");
    if (hrt_tokenizer_encode(encoder, text, bytes, true, &ids, &error)) {
        if (!hrt_tokenizer_encode(encoder, text, bytes, true, &again, &error) ||
            ids.count != again.count ||
            (ids.count && memcmp(ids.at, again.at, ids.count * sizeof *ids.at) != 0))
            fuzz_broken("the same text gives the same ids");
    } else if (!*error.text) {
        fuzz_broken("a refusal says why");
    }
    for (size_t i = 0; i < ids.count; i++) {
        if (ids.at[i] < 0 || ids.at[i] >= hrt_tokenizer_size(tokenizer))
            fuzz_broken("ids lie in the vocabulary");
        const struct hrt_piece piece = hrt_tokenizer_decode(tokenizer, ids.at[i], i == 0);
        if (strnlen(piece.text, piece.bytes) > piece.bytes) fuzz_broken("a token can be read");
    }
    hrt_tokenizer_encoder_free(encoder);
    free(ids.at);
    free(again.at);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size) {
    const uint8_t *text = size ? memchr(input, '\0', size) : NULL;
    if (!text) return 0;
    struct hrt_error error = {0};
    struct hrt_tokenizer *tokenizer =
        hrt_tokenizer_load(fuzz_file(0, input, (size_t)(text - input)), &error);
    if (tokenizer)
        encode(tokenizer, (const char *)text + 1, size - (size_t)(text - input) - 1);
    else if (!*error.text)
        fuzz_broken("a refusal says why");
    hrt_tokenizer_free(tokenizer);
    return 0;
}
