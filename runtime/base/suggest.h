// "Did you mean": the known name closest to the typed one.
#ifndef HECATE_RUNTIME_BASE_SUGGEST_H
#define HECATE_RUNTIME_BASE_SUGGEST_H

#include <stddef.h>

// Collects the best candidate; zero-initialise but for `typed`.
struct hrt_suggestion {
    const char *typed;
    const char *best; // Borrowed from the candidates; NULL: none is close enough.
    size_t distance;  // Distance from `best`: letters inserted, removed, replaced, or swapped.
};

// Offers a candidate. It is kept when it is closer than all before and at most a third of the typed
// name (at least 1, at most 8 characters) would have to change.
void hrt_base_suggest(struct hrt_suggestion *suggestion, const char *candidate);

#endif
