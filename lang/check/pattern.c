// Patterns of parameters' paths: `*` stands for any characters, also none.
//
// A pattern is read as the automaton whose states are its positions, so that what it may still match behind a
// beginning of paths is known before the paths are: two beginnings with equal states match the same ends.
#include "lang/check/pattern.h"

#include <stdio.h>
#include <string.h>

// Adds the states reached without reading a character: a `*` may stand for nothing.
static void close_states(const char *pattern, struct hec_states *states) {
    for (size_t i = 0; pattern[i]; i++) {
        if (pattern[i] == '*' && states->at[i]) states->at[i + 1] = true;
    }
}

void hec_pattern_begin(const char *pattern, struct hec_states *states) {
    *states = (struct hec_states){.at = {true}};
    close_states(pattern, states);
}

static void read_character(const char *pattern, struct hec_states *states, char c) {
    struct hec_states next = {{false}};
    for (size_t i = 0; pattern[i]; i++) {
        if (!states->at[i]) continue;
        if (pattern[i] == '*') next.at[i] = true;
        if (pattern[i] == c) next.at[i + 1] = true;
    }
    *states = next;
    close_states(pattern, states);
}

void hec_pattern_read(const char *pattern, struct hec_states *states, const char *text) {
    for (; *text; text++) read_character(pattern, states, *text);
}

static void read_number(const char *pattern, struct hec_states *states, int64_t number) {
    char digits[24];
    snprintf(digits, sizeof digits, "%lld", (long long)number);
    hec_pattern_read(pattern, states, digits);
}

bool hec_pattern_may_match(const char *pattern, const char *path, int64_t layer) {
    char text[64];
    const size_t before = strcspn(path, "{");
    if (strncmp(path + before, "{}", 2) != 0 || before > sizeof text - 24) return true;
    snprintf(text, sizeof text, "%.*s%lld.", (int)before, path, (long long)layer);
    const size_t literal = strcspn(pattern, "*"), length = strlen(text);
    return !strncmp(pattern, text, literal < length ? literal : length);
}

bool hec_pattern_matches(const char *pattern, const char *path, int64_t layer, int64_t expert) {
    struct hec_states states;
    hec_pattern_begin(pattern, &states);
    while (*path) {
        if (!strncmp(path, "{}", 2)) {
            read_number(pattern, &states, layer);
            path += 2;
        } else if (!strncmp(path, "{e}", 3)) {
            read_number(pattern, &states, expert);
            path += 3;
        } else {
            read_character(pattern, &states, *path++);
        }
    }
    return states.at[strlen(pattern)];
}
