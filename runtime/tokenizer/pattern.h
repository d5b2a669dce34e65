// The patterns of tokenizer.json, by PCRE2. They are written for another library of regular expressions, so a pattern
// that the two read differently is translated or refused (translate.c).
#ifndef HECATE_RUNTIME_TOKENIZER_PATTERN_H
#define HECATE_RUNTIME_TOKENIZER_PATTERN_H

#include <stdbool.h>
#include <stddef.h>

#include "runtime/base/error.h"

struct hrt_pattern;

// The treatment of the text that a pattern matches.
enum hrt_behavior {
    HRT_ISOLATED,             // A piece of its own.
    HRT_REMOVED,              // Nothing.
    HRT_MERGED_WITH_PREVIOUS, // The end of the piece in front.
    HRT_MERGED_WITH_NEXT,     // The begin of the piece behind.
    HRT_CONTIGUOUS,           // A piece with the matches next to it.
};

// Scratch of one thread for matching.
struct hrt_matcher;

// NULL, `error`: its fault; the caller knows where it stands.
struct hrt_pattern *hrt_tokenizer_pattern_create(const char *text, struct hrt_error *error);
void hrt_tokenizer_pattern_free(struct hrt_pattern *pattern);

// The effect of a pattern on a text. With `invert` the text between matches counts as matches.
void hrt_tokenizer_pattern_behave(struct hrt_pattern *pattern, enum hrt_behavior behavior,
                                  bool invert);

struct hrt_matcher *hrt_tokenizer_matcher_create(void); // NULL: no memory.
void hrt_tokenizer_matcher_free(struct hrt_matcher *matcher);

// Whether the pattern matches at or behind `from`, and where. 0: no, 1: yes, -1: it gives up (`error`).
int hrt_tokenizer_pattern_find(const struct hrt_pattern *pattern, struct hrt_matcher *matcher,
                               const char *text, size_t bytes, size_t from, size_t match[2],
                               struct hrt_error *error);

// A walk over the pieces that a pattern cuts a text into.
struct hrt_split {
    const struct hrt_pattern *pattern;
    const char *text;
    size_t bytes, at;    // Everything before `at` has been looked at.
    size_t begin, end;   // Text that is held back, as the next part may belong to it;
    bool holds, matched; // whether there is something, and whether the pattern matched it.
    bool waits;          // A match lies behind the part that comes first:
    size_t match[2];     // here.
    bool none;           // There is no more match.
    size_t from, last;   // Where the next match is looked for; where the last one ended,
    bool any;            // if there was one.
};

// The next piece: text[piece[0]] .. text[piece[1]]. 0: no more, 1, -1: the pattern gives up (`error`).
int hrt_tokenizer_split_next(struct hrt_split *split, struct hrt_matcher *matcher, size_t piece[2],
                             struct hrt_error *error);

#endif
