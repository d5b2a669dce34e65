// How byte-level vocabularies write bytes: each as a character that can be seen.
#ifndef HECATE_RUNTIME_TOKENIZER_BYTES_H
#define HECATE_RUNTIME_TOKENIZER_BYTES_H

#include "runtime/tokenizer/parts.h"

// Appends the bytes that `written` stands for to `out`; or nothing and *known false, where a character stands for
// none. False: no memory.
bool hrt_tokenizer_bytes_read(const char *written, size_t length, struct hrt_text *out,
                              bool *known);

// The byte that <0xNN> stands for; -1: it is something else.
int hrt_tokenizer_byte_named(const struct hrt_text *written);

#endif
