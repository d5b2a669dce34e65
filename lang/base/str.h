#ifndef HECATE_LANG_BASE_STR_H
#define HECATE_LANG_BASE_STR_H

#include <stddef.h>

#include "lang/base/arena.h"

// A set of strings, each stored once: equal text is an equal pointer. Zero-initialise, then set
// `arena`.
struct hec_names {
    struct hec_arena *arena;
    const char **slot; // Open addressing; NULL is free.
    size_t slots;      // A power of two, or 0.
    size_t count;
};

// Returns the one stored copy of the `length` bytes at `text`, NUL-terminated.
const char *hec_intern(struct hec_names *names, const char *text, size_t length);

// The same for NUL-terminated text.
const char *hec_intern_text(struct hec_names *names, const char *text);

// Returns whichever of `candidates` is close enough to `word` to be the one that a user meant, or
// NULL. Deterministic: of equally close ones the first.
const char *hec_closest(const char *word, const char *const *candidates, int count);

#endif
