// Byte-pair encoding of words: the pair that was learned first merges first, the left one of equals. Words that were
// seen are kept.
#ifndef HECATE_RUNTIME_TOKENIZER_MERGE_H
#define HECATE_RUNTIME_TOKENIZER_MERGE_H

#include "runtime/tokenizer/parts.h"

struct hrt_words;

struct hrt_words *hrt_tokenizer_words_create(void); // NULL: no memory.
void hrt_tokenizer_words_free(struct hrt_words *words);

// Appends the ids of one word, sound UTF-8 below 2 GiB. False: no memory.
bool hrt_tokenizer_words_encode(struct hrt_words *words, const struct hrt_model *model,
                                const char *word, size_t bytes, struct hrt_ids *ids);

#endif
