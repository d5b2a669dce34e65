// Translating, compiling and matching patterns; cutting texts by them.
#define PCRE2_CODE_UNIT_WIDTH 8
#include "runtime/tokenizer/pattern.h"

#include <pcre2.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/tokenizer/translate.h"

enum { STACK_FIRST = 32 << 10, STACK_MOST = 64 << 20 };

struct hrt_pattern {
    pcre2_code *code;
    enum hrt_behavior behavior;
    bool invert;
    bool compiled; // To instructions of the machine.
};

struct hrt_matcher {
    pcre2_match_data *match;
    pcre2_match_context *context;
    pcre2_jit_stack *stack;
};

static bool compile(struct hrt_pattern *pattern, const char *text, struct hrt_error *error) {
    int code;
    PCRE2_SIZE offset;
    pcre2_compile_context *context = pcre2_compile_context_create(NULL);
    if (!context) return hrt_fail(error, "out of memory");
    pcre2_set_newline(context, PCRE2_NEWLINE_LF);
    pattern->code = pcre2_compile((PCRE2_SPTR)text, PCRE2_ZERO_TERMINATED, PCRE2_UTF | PCRE2_UCP,
                                  &code, &offset, context);
    pcre2_compile_context_free(context);
    if (!pattern->code) {
        PCRE2_UCHAR why[256];
        pcre2_get_error_message(code, why, sizeof why);
        return hrt_fail(error, "%s, %zu bytes into '%.200s'", (const char *)why, (size_t)offset,
                        text);
    }
    pattern->compiled = pcre2_jit_compile(pattern->code, PCRE2_JIT_COMPLETE) == 0;
    return true;
}

struct hrt_pattern *hrt_tokenizer_pattern_create(const char *text, struct hrt_error *error) {
    char *translated = hrt_tokenizer_pattern_translate(text, error);
    if (!translated) return NULL;
    struct hrt_pattern *pattern = calloc(1, sizeof *pattern);
    const bool made =
        pattern ? compile(pattern, translated, error) : hrt_fail(error, "out of memory");
    free(translated);
    if (made) return pattern;
    hrt_tokenizer_pattern_free(pattern);
    return NULL;
}

void hrt_tokenizer_pattern_free(struct hrt_pattern *pattern) {
    if (!pattern) return;
    pcre2_code_free(pattern->code);
    free(pattern);
}

void hrt_tokenizer_pattern_behave(struct hrt_pattern *pattern, enum hrt_behavior behavior,
                                  bool invert) {
    pattern->behavior = behavior;
    pattern->invert = invert;
}

struct hrt_matcher *hrt_tokenizer_matcher_create(void) {
    struct hrt_matcher *matcher = calloc(1, sizeof *matcher);
    if (!matcher) return NULL;
    matcher->match = pcre2_match_data_create(1, NULL);
    matcher->context = pcre2_match_context_create(NULL);
    matcher->stack = pcre2_jit_stack_create(STACK_FIRST, STACK_MOST, NULL);
    if (matcher->match && matcher->context && matcher->stack) {
        pcre2_jit_stack_assign(matcher->context, NULL, matcher->stack);
        return matcher;
    }
    hrt_tokenizer_matcher_free(matcher);
    return NULL;
}

void hrt_tokenizer_matcher_free(struct hrt_matcher *matcher) {
    if (!matcher) return;
    pcre2_match_data_free(matcher->match);
    pcre2_match_context_free(matcher->context);
    pcre2_jit_stack_free(matcher->stack);
    free(matcher);
}

int hrt_tokenizer_pattern_find(const struct hrt_pattern *pattern, struct hrt_matcher *matcher,
                               const char *text, size_t bytes, size_t from, size_t match[2],
                               struct hrt_error *error) {
    const PCRE2_SPTR subject = (PCRE2_SPTR)text;
    const int found = pattern->compiled
                          ? pcre2_jit_match(pattern->code, subject, bytes, from, 0, matcher->match,
                                            matcher->context)
                          : pcre2_match(pattern->code, subject, bytes, from, PCRE2_NO_UTF_CHECK,
                                        matcher->match, matcher->context);
    if (found >= 0) {
        const PCRE2_SIZE *ends = pcre2_get_ovector_pointer(matcher->match);
        match[0] = ends[0];
        match[1] = ends[1];
        return 1;
    }
    if (found == PCRE2_ERROR_NOMATCH) return 0;
    PCRE2_UCHAR why[256];
    pcre2_get_error_message(found, why, sizeof why);
    hrt_fail(error, "the pattern of the tokenizer gives up on this text: %s", (const char *)why);
    return -1;
}

// Whether a part belongs to what is held back in front of it.
static bool joins(const struct hrt_split *split, bool matched) {
    switch (split->pattern->behavior) {
    case HRT_MERGED_WITH_PREVIOUS:
        return matched && !split->matched;
    case HRT_MERGED_WITH_NEXT:
        return split->matched && !matched;
    case HRT_CONTIGUOUS:
        return split->matched == matched;
    default:
        return false;
    }
}

// Finds the next match, into split->match; one of nothing counts, but for one where the last match ended. At the end of
// the text: none.
static int next_match(struct hrt_split *split, struct hrt_matcher *matcher,
                      struct hrt_error *error) {
    while (split->from <= split->bytes) {
        const int found = hrt_tokenizer_pattern_find(
            split->pattern, matcher, split->text, split->bytes, split->from, split->match, error);
        if (found <= 0) return found;
        const size_t end = split->match[1];
        const bool empty = split->match[0] == end,
                   again = empty && split->any && end == split->last;
        split->from = end;
        if (empty) { // The next character.
            split->from++;
            while (split->from < split->bytes && (split->text[split->from] & 0xc0) == 0x80)
                split->from++;
        }
        if (again) continue;
        split->any = true;
        split->last = end;
        return 1;
    }
    return 0;
}

// The next part: a match, or the text between two.
static int next_part(struct hrt_split *split, struct hrt_matcher *matcher, size_t part[2],
                     bool *matched, struct hrt_error *error) {
    if (!split->waits) {
        const int found = split->at <= split->bytes ? next_match(split, matcher, error) : 0;
        if (found < 0) return found;
        if (found == 0 && split->at >= split->bytes) return 0;
        if (found == 0) split->match[0] = split->match[1] = split->bytes;
        split->none = found == 0;
    }
    *matched = split->match[0] == split->at && !split->none;
    split->waits = !*matched && !split->none;
    part[0] = split->at;
    part[1] = *matched ? split->match[1] : split->match[0];
    split->at = part[1];
    *matched ^= split->pattern->invert;
    return 1;
}

int hrt_tokenizer_split_next(struct hrt_split *split, struct hrt_matcher *matcher, size_t piece[2],
                             struct hrt_error *error) {
    for (;;) {
        size_t part[2];
        bool matched;
        const int found = next_part(split, matcher, part, &matched, error);
        if (found < 0) return found;
        if (found == 1 && matched && split->pattern->behavior == HRT_REMOVED) continue;
        if (found == 1 && split->holds && joins(split, matched)) {
            split->end = part[1];
            split->matched = matched;
            continue;
        }
        const bool held = split->holds;
        piece[0] = split->begin;
        piece[1] = split->end;
        split->holds = found == 1;
        if (found == 1) {
            split->begin = part[0];
            split->end = part[1];
            split->matched = matched;
        }
        if (held) return 1;
        if (found == 0) return 0;
    }
}
