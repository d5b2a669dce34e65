// Text to token ids and back, by a tokenizer.json: byte-pair encoding over bytes (GPT-2, Llama 3, Qwen, DeepSeek,
// GPT-OSS) or over characters with bytes behind them (Llama 2, Mixtral). The ids are those of the library that such
// files come from. A feature that we do not know is refused, never left out.
//
//     struct hrt_tokenizer *tokenizer = hrt_tokenizer_load("tokenizer.json", &error);
//     struct hrt_encoder *encoder = hrt_tokenizer_encoder_create(tokenizer, &error);
//     hrt_tokenizer_encode(encoder, text, strlen(text), true, &ids, &error);
//     for (size_t i = 0; i < ids.count; i++) piece = hrt_tokenizer_decode(tokenizer, ids.at[i], i == 0);
//
// A tokenizer does not change once it is loaded: any number of threads share it. Each has an encoder of its own.
// docs/data.md says which parts of tokenizer.json are known.
#ifndef HECATE_RUNTIME_TOKENIZER_TOKENIZER_H
#define HECATE_RUNTIME_TOKENIZER_TOKENIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/error.h"

struct hrt_tokenizer;
struct hrt_encoder; // A thread's state for encoding: words that it has seen, and scratch.

// Token ids in a row. Zero-initialized it is empty; the owner frees `at`.
struct hrt_ids {
    int32_t *at;
    size_t count, room;
};

// The bytes of a token. They belong to the tokenizer. A token may end within a character of UTF-8, which the
// next ones complete.
struct hrt_piece {
    const char *text;
    size_t bytes;
    bool special; // It marks something (the end of a text, say), and is no text.
};

// Reads a tokenizer.json. NULL: `error` names the file, and the line or the key that is wrong.
struct hrt_tokenizer *hrt_tokenizer_load(const char *path, struct hrt_error *error);
void hrt_tokenizer_free(struct hrt_tokenizer *tokenizer);

// All ids are below it; some may be nobody's.
int32_t hrt_tokenizer_size(const struct hrt_tokenizer *tokenizer);

// The id of the added token that is written so ("<|endoftext|>"); -1: there is none.
int32_t hrt_tokenizer_find(const struct hrt_tokenizer *tokenizer, const char *written);

// NULL: no memory. The tokenizer has to outlive it.
struct hrt_encoder *hrt_tokenizer_encoder_create(const struct hrt_tokenizer *tokenizer,
                                                 struct hrt_error *error);
void hrt_tokenizer_encoder_free(struct hrt_encoder *encoder);

// Appends the ids of a text. Added tokens in the text become their ids. Bytes that are no UTF-8 are read as U+FFFD, one
// for each sequence that is cut short, one for each other byte. `frame` puts what the file's post_processor says around
// the text (a token for its begin, mostly). False: no memory, or a pattern that gives up on this text; `ids` then has
// some of it. The same text gives the same ids, for any earlier text of the encoder.
bool hrt_tokenizer_encode(struct hrt_encoder *encoder, const char *text, size_t bytes, bool frame,
                          struct hrt_ids *ids, struct hrt_error *error);

// The bytes of `id`; none, where no token has it. With the `first` token of a text some tokenizers leave the space
// out that they put there.
struct hrt_piece hrt_tokenizer_decode(const struct hrt_tokenizer *tokenizer, int32_t id,
                                      bool first);

#endif
