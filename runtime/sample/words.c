// Text, bytes and ids.
#include "runtime/sample/words.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/sample/ends.h"

static bool are_bytes(const struct hrt_words *words) {
    return !words->tokenizer && words->vocabulary == 256;
}

bool hrt_sample_words_are_text(const struct hrt_words *words) {
    return words->tokenizer || are_bytes(words);
}

bool hrt_sample_words_open(struct hrt_words *words, int64_t vocabulary, const char *path,
                           struct hrt_error *error) {
    *words = (struct hrt_words){.vocabulary = vocabulary};
    if (!path) return true;
    words->tokenizer = hrt_tokenizer_load(path, error);
    if (!words->tokenizer) return false;
    words->encoder = hrt_tokenizer_encoder_create(words->tokenizer, error);
    return words->encoder && hrt_sample_ends_read(path, vocabulary, &words->ends, error);
}

void hrt_sample_words_close(struct hrt_words *words) {
    hrt_tokenizer_encoder_free(words->encoder);
    hrt_tokenizer_free(words->tokenizer);
    free(words->ends.at);
    *words = (struct hrt_words){0};
}

static bool add(struct hrt_ids *ids, int32_t id, struct hrt_error *error) {
    if (ids->count == ids->room) {
        const size_t room = ids->room ? 2 * ids->room : 64;
        int32_t *at = realloc(ids->at, room * sizeof *at);
        if (!at) return hrt_fail(error, "out of memory");
        ids->at = at;
        ids->room = room;
    }
    ids->at[ids->count++] = id;
    return true;
}

static bool read_ids(const struct hrt_words *words, const char *prompt, struct hrt_ids *ids,
                     struct hrt_error *error) {
    const char *at = prompt;
    while (*(at += strspn(at, " ,\t\n"))) {
        char *end;
        errno = 0;
        const long long id = strtoll(at, &end, 10);
        if (end == at || errno || id < 0 || id >= words->vocabulary)
            return hrt_fail_usage(error, "the prompt needs token ids below %" PRId64 ", not '%s'",
                                  words->vocabulary, at);
        if (!add(ids, (int32_t)id, error)) return false;
        at = end;
    }
    return true;
}

static bool read_bytes(const char *prompt, struct hrt_ids *ids, struct hrt_error *error) {
    for (; *prompt; prompt++) {
        if (!add(ids, (unsigned char)*prompt, error)) return false;
    }
    return true;
}

static bool encode(struct hrt_words *words, const char *text, bool frame, struct hrt_ids *ids,
                   struct hrt_error *error) {
    return hrt_tokenizer_encode(words->encoder, text, strlen(text), frame, ids, error);
}

// Begins a text with the tokenizer's own beginning, or the token that ends texts, or a new line.
static bool begin_text(struct hrt_words *words, struct hrt_ids *ids, struct hrt_error *error) {
    if (!encode(words, "", true, ids, error)) return false;
    if (ids->count > 0) return true;
    if (words->ends.count > 0) return add(ids, words->ends.at[0], error);
    return encode(words, "\n", false, ids, error);
}

// A tokenizer may know tokens that the model does not.
static bool check_ids(const struct hrt_words *words, const struct hrt_ids *ids,
                      struct hrt_error *error) {
    for (size_t i = 0; i < ids->count; i++) {
        if (ids->at[i] >= words->vocabulary)
            return hrt_fail(error,
                            "the tokenizer is of another model: token %" PRId32
                            " of the prompt is not below the vocabulary of %" PRId64,
                            ids->at[i], words->vocabulary);
    }
    return ids->count > 0 || hrt_fail_usage(error, "the prompt has no token");
}

bool hrt_sample_words_read(struct hrt_words *words, const char *prompt, struct hrt_ids *ids,
                           struct hrt_error *error) {
    if (words->tokenizer)
        return (prompt ? encode(words, prompt, true, ids, error) : begin_text(words, ids, error)) &&
               check_ids(words, ids, error);
    const bool bytes = are_bytes(words);
    if (!prompt) prompt = bytes ? "\n" : "0";
    return (bytes ? read_bytes(prompt, ids, error) : read_ids(words, prompt, ids, error)) &&
           check_ids(words, ids, error);
}

struct hrt_piece hrt_sample_words_write(struct hrt_words *words, int32_t id, bool first) {
    if (words->tokenizer) return hrt_tokenizer_decode(words->tokenizer, id, first);
    if (are_bytes(words)) {
        words->number[0] = (char)id;
        return (struct hrt_piece){.text = words->number, .bytes = 1};
    }
    const int bytes = snprintf(words->number, sizeof words->number, "%" PRId32 " ", id);
    return (struct hrt_piece){.text = words->number, .bytes = (size_t)bytes};
}

bool hrt_sample_words_end(const struct hrt_words *words, int32_t id) {
    for (size_t i = 0; i < words->ends.count; i++) {
        if (words->ends.at[i] == id) return true;
    }
    return false;
}
