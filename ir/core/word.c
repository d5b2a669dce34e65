#include "ir/core/word.h"

#include <assert.h>
#include <string.h>

const char *hec_next_word(const char *at, struct hec_word *word) {
    while (*at == ' ') at++;
    if (!*at) return NULL;
    size_t length = strcspn(at, " ");
    const char *end = at + length;
    *word = (struct hec_word){0};
    if (at[length - 1] == '?' || at[length - 1] == '*') word->repeat = at[--length];
    const char *colon = memchr(at, ':', length);
    const size_t name = colon ? (size_t)(colon - at) : length;
    assert(name < sizeof word->name);
    memcpy(word->name, at, name);
    if (colon) memcpy(word->kind, colon + 1, length - name - 1);
    return end;
}
