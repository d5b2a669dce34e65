// Patterns of tokenizer.json are written for Oniguruma with Ruby's syntax; here they become PCRE2's.
#ifndef HECATE_RUNTIME_TOKENIZER_TRANSLATE_H
#define HECATE_RUNTIME_TOKENIZER_TRANSLATE_H

#include "runtime/base/error.h"

// The pattern that matches the same texts, for PCRE2 with UTF, UCP and a newline that is LF. The caller frees it. NULL:
// `error` names the part without a translation, and its byte.
char *hrt_tokenizer_pattern_translate(const char *text, struct hrt_error *error);

#endif
