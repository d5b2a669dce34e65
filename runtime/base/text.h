// Questions about texts.
#ifndef HECATE_RUNTIME_BASE_TEXT_H
#define HECATE_RUNTIME_BASE_TEXT_H

#include <stdbool.h>
#include <string.h>

static inline bool hrt_base_ends_with(const char *text, const char *end) {
    const size_t length = strlen(text), wanted = strlen(end);
    return length >= wanted && strcmp(text + length - wanted, end) == 0;
}

#endif
