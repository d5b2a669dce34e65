// The form of tokens for a reader of samples: text through a tokenizer, bytes, or ids.
#ifndef HECATE_RUNTIME_SAMPLE_WORDS_H
#define HECATE_RUNTIME_SAMPLE_WORDS_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/error.h"
#include "runtime/tokenizer/tokenizer.h"

struct hrt_words {
    int64_t vocabulary;              // The model's vocabulary: ids are below it.
    struct hrt_tokenizer *tokenizer; // NULL: bytes where the vocabulary is 256, or else ids.
    struct hrt_encoder *encoder;
    struct hrt_ids ends; // Tokens that end a text.
    char number[16];     // The id that was written last.
};

// Reads the tokenizer.json `path`, and which tokens end a text from `eos_token_id` of generation_config.json or
// config.json beside it, where there is one. NULL: no tokenizer. False: `error` names the file. Close it in either
// case.
bool hrt_sample_words_open(struct hrt_words *words, int64_t vocabulary, const char *path,
                           struct hrt_error *error);

// Also of zeroed ones.
void hrt_sample_words_close(struct hrt_words *words);

// Whether text stands for itself: through a tokenizer, or as bytes.
bool hrt_sample_words_are_text(const struct hrt_words *words);

// Appends the tokens of a prompt, at least one: of a text, with what the tokenizer puts around it, or ids with blanks
// or commas between. NULL: the beginning of a text; without a tokenizer a newline, or id 0. False: something in it is
// no token of the model.
bool hrt_sample_words_read(struct hrt_words *words, const char *prompt, struct hrt_ids *ids,
                           struct hrt_error *error);

// The text of a token; `first`: in a text without a prompt. It stays until the next call. Tokens that mark
// something are `special`, and not printed.
struct hrt_piece hrt_sample_words_write(struct hrt_words *words, int32_t id, bool first);

// Whether the token ends a text.
bool hrt_sample_words_end(const struct hrt_words *words, int32_t id);

#endif
