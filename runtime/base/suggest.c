// Edit distance over short names, where a swap of neighbours is one edit.
#include "runtime/base/suggest.h"

#include <stdbool.h>
#include <string.h>

enum { LONGEST = 63 }; // Longer names are never suggested for.

static size_t smaller(size_t a, size_t b) {
    return a < b ? a : b;
}

static size_t distance_between(const char *a, const char *b) {
    const size_t a_length = strlen(a), b_length = strlen(b);
    size_t row[3][LONGEST + 1]; // row[i % 3][j]: first i letters of a to first j of b.
    for (size_t j = 0; j <= b_length; j++) row[0][j] = j;
    for (size_t i = 1; i <= a_length; i++) {
        size_t *now = row[i % 3], *last = row[(i + 2) % 3], *before = row[(i + 1) % 3];
        now[0] = i;
        for (size_t j = 1; j <= b_length; j++) {
            const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            now[j] =
                smaller(last[j - 1] + (a[i - 1] != b[j - 1]), 1 + smaller(last[j], now[j - 1]));
            if (swapped) now[j] = smaller(now[j], before[j - 2] + 1);
        }
    }
    return row[a_length % 3][b_length];
}

void hrt_base_suggest(struct hrt_suggestion *suggestion, const char *candidate) {
    const size_t length = strlen(suggestion->typed);
    if (length > LONGEST || strlen(candidate) > LONGEST) return;
    const size_t allowed = length < 3 ? 1 : smaller(length / 3, 8);
    const size_t distance = distance_between(suggestion->typed, candidate);
    if (distance > allowed) return;
    if (suggestion->best && distance >= suggestion->distance) return;
    suggestion->best = candidate;
    suggestion->distance = distance;
}
