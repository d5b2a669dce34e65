// A chat template, a NUL, a record of a conversation or of a pair of answers.
//
// Promises: a refusal says why; generation blocks lie in the text, in order; the second rendering is the first; ids lie
// in the vocabulary, and something counts, in both answers of a pair.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"
#include "tools/prepare/chat.h"

static const char *const day = "2026-11-27";

static void render(const struct jinja *jinja, const json_t *context) {
    struct hrt_error error = {0};
    struct jinja_rendered first = {0}, second = {0};
    size_t end = 0;
    if (jinja_render(jinja, context, day, &first, &error)) {
        for (size_t i = 0; i < first.spans; i++) {
            if (first.span[i].begin < end || first.span[i].end < first.span[i].begin ||
                first.span[i].end > first.bytes)
                fuzz_broken("generation blocks lie in the text, in order");
            end = first.span[i].end;
        }
        if (!jinja_render(jinja, context, day, &second, &error) || first.bytes != second.bytes ||
            memcmp(first.text, second.text, first.bytes) != 0)
            fuzz_broken("the second rendering is the first");
    } else if (!*error.text) {
        fuzz_broken("a refusal says why");
    }
    jinja_rendered_free(&first);
    jinja_rendered_free(&second);
}

static void encode(const struct chat *chat, const struct hrt_tokenizer *tokenizer,
                   const json_t *record) {
    struct hrt_error error = {0};
    struct hrt_ids ids = {0};
    uint16_t *weights = NULL;
    size_t counted = 0;
    struct hrt_encoder *encoder = hrt_tokenizer_encoder_create(tokenizer, &error);
    if (!encoder) fuzz_broken("there is memory for an encoder");
    if (chat_encode(chat, tokenizer, encoder, record, &ids, &weights, &error)) {
        for (size_t i = 0; i < ids.count; i++) {
            if (ids.at[i] < 0 || ids.at[i] >= hrt_tokenizer_size(tokenizer))
                fuzz_broken("ids lie in the vocabulary");
            counted += weights[i] > 0;
        }
        if (counted == 0) fuzz_broken("something counts");
    } else if (!*error.text) {
        fuzz_broken("a refusal says why");
    }
    hrt_tokenizer_encoder_free(encoder);
    free(ids.at);
    free(weights);
}

// The same record as a pair of answers.
static void encode_pair(const struct chat *chat, const struct hrt_tokenizer *tokenizer,
                        const json_t *record) {
    struct hrt_error error = {0};
    struct hrt_ids ids = {0};
    uint16_t *weights = NULL;
    size_t chosen = 0, counted[2] = {0};
    struct hrt_encoder *encoder = hrt_tokenizer_encoder_create(tokenizer, &error);
    if (!encoder) fuzz_broken("there is memory for an encoder");
    if (pairs_encode(chat, tokenizer, encoder, record, &ids, &weights, &chosen, &error)) {
        for (size_t i = 0; i < ids.count; i++) {
            if (ids.at[i] < 0 || ids.at[i] >= hrt_tokenizer_size(tokenizer))
                fuzz_broken("ids lie in the vocabulary");
            counted[i >= chosen] += weights[i];
        }
        if (counted[0] == 0 || counted[1] == 0) fuzz_broken("something counts in both answers");
    } else if (!*error.text) {
        fuzz_broken("a refusal says why");
    }
    hrt_tokenizer_encoder_free(encoder);
    free(ids.at);
    free(weights);
}

// A model's folder without a template, once.
static const char *folder(void) {
    static char name[] = "/tmp/chat_fuzz-XXXXXX";
    static bool made;
    char path[64];
    if (made) return name;
    if (!mkdtemp(name)) fuzz_broken("there is a folder");
    snprintf(path, sizeof path, "%s/tokenizer_config.json", name);
    FILE *file = fopen(path, "w");
    if (!file || fputs("{\"bos_token\": \"<s>\", \"eos_token\": \"</s>\"}", file) < 0 ||
        fclose(file) != 0)
        fuzz_broken("there is a file");
    made = true;
    return name;
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size) {
    static struct hrt_tokenizer *tokenizer;
    struct hrt_error error = {0};
    const uint8_t *cut = size ? memchr(input, '\0', size) : NULL;
    if (!cut) return 0;
    if (!tokenizer) tokenizer = hrt_tokenizer_load(TOKENIZER, &error);
    if (!tokenizer) fuzz_broken("there is a tokenizer");
    const size_t bytes = (size_t)(cut - input);
    struct jinja *jinja = jinja_parse("template", (const char *)input, bytes, &error);
    if (!jinja && !*error.text) fuzz_broken("a refusal says why");
    json_t *record =
        jinja ? json_loadb((const char *)cut + 1, size - bytes - 1, JSON_ALLOW_NUL, NULL) : NULL;
    if (record) render(jinja, record);
    struct chat *chat =
        record ? chat_load(folder(), fuzz_file(0, input, bytes), day, &error) : NULL;
    if (chat) {
        encode(chat, tokenizer, record);
        encode_pair(chat, tokenizer, record);
    }
    chat_free(chat);
    json_decref(record);
    jinja_free(jinja);
    return 0;
}
