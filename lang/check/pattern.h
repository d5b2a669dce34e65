// Patterns of parameters' paths. Private to check/.
#ifndef HECATE_LANG_CHECK_PATTERN_H
#define HECATE_LANG_CHECK_PATTERN_H

#include <stdbool.h>
#include <stdint.h>

enum { HEC_PATTERN_MAX = 256 }; // Characters.

// Positions of a pattern that the characters of a path so far may have led to.
struct hec_states {
    bool at[HEC_PATTERN_MAX + 1];
};

// Before anything has been read; behind `text`. The pattern has at most HEC_PATTERN_MAX characters.
void hec_pattern_begin(const char *pattern, struct hec_states *states);
void hec_pattern_read(const char *pattern, struct hec_states *states, const char *text);

// Whether `pattern` may match the paths of a layer: false without its states being followed.
bool hec_pattern_may_match(const char *pattern, const char *path, int64_t layer);

// Whether the pattern matches `path`, whose {} and {e} stand for `layer` and `expert`.
bool hec_pattern_matches(const char *pattern, const char *path, int64_t layer, int64_t expert);

#endif
