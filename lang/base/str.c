// Interned strings, and the guess at what a misspelt word was meant to be.
#include "lang/base/str.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

enum { WORD_MAX = 63 }; // Longer words are not guessed at.

// FNV-1a, 64 bits.
static uint64_t hash(const char *text, size_t length) {
    uint64_t value = 0xcbf29ce484222325u;
    for (size_t i = 0; i < length; i++) {
        value = (value ^ (unsigned char)text[i]) * 0x100000001b3u;
    }
    return value;
}

static const char **find_slot(const struct hec_names *names, const char *text, size_t length) {
    size_t at = hash(text, length) & (names->slots - 1);
    while (names->slot[at]) {
        const char *held = names->slot[at];
        if (!strncmp(held, text, length) && held[length] == '\0') break;
        at = (at + 1) & (names->slots - 1);
    }
    return &names->slot[at];
}

static void grow(struct hec_names *names) {
    const struct hec_names before = *names;
    names->slots = before.slots ? before.slots * 2 : 256;
    names->slot = hec_arena_alloc(names->arena, names->slots, sizeof *names->slot);
    for (size_t i = 0; i < before.slots; i++) {
        const char *held = before.slot[i];
        if (held) *find_slot(names, held, strlen(held)) = held;
    }
}

const char *hec_intern(struct hec_names *names, const char *text, size_t length) {
    if (2 * (names->count + 1) > names->slots) grow(names);
    const char **slot = find_slot(names, text, length);
    if (!*slot) {
        *slot = hec_arena_copy(names->arena, text, length);
        names->count++;
    }
    return *slot;
}

const char *hec_intern_text(struct hec_names *names, const char *text) {
    return hec_intern(names, text, strlen(text));
}

static int smallest(int a, int b, int c) {
    const int ab = a < b ? a : b;
    return ab < c ? ab : c;
}

// Edits (insert, delete, replace, swap neighbours) that lead from `a` to `b`.
static int distance(const char *a, const char *b) {
    const int columns = (int)strlen(b);
    int before[WORD_MAX + 1] = {0}, above[WORD_MAX + 1], row[WORD_MAX + 1];
    for (int j = 0; j <= columns; j++) above[j] = j;
    for (int i = 1; a[i - 1]; i++) {
        row[0] = i;
        for (int j = 1; j <= columns; j++) {
            const int replaced = above[j - 1] + (a[i - 1] != b[j - 1]);
            row[j] = smallest(above[j] + 1, row[j - 1] + 1, replaced);
            const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            if (swapped && before[j - 2] + 1 < row[j]) row[j] = before[j - 2] + 1;
        }
        memcpy(before, above, sizeof before);
        memcpy(above, row, sizeof above);
    }
    return above[columns];
}

const char *hec_closest(const char *word, const char *const *candidates, int count) {
    const size_t length = strlen(word);
    if (length > WORD_MAX) return NULL;
    const char *best = NULL;
    int best_distance = (int)(length + 2) / 3 + 1; // A third of the word may be wrong, rounded up.
    if (length == 1) best_distance = 1;            // One letter for another is no misspelling.
    for (int i = 0; i < count; i++) {
        if (strlen(candidates[i]) > WORD_MAX) continue;
        const int edits = strcasecmp(word, candidates[i]) ? distance(word, candidates[i]) : 0;
        if (edits >= best_distance) continue;
        best = candidates[i];
        best_distance = edits;
    }
    return best;
}
