// Choosing and hiding tokens.
#include "runtime/data/mask.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>

enum { TENTHS = 10, MASKED = 8, RANDOM = 1 }; // The rest stay.
enum { CHOICE, KIND, TOKEN, DRAWS };          // Numbers drawn for each position.

int64_t hrt_data_mask_targets(const struct hrt_mask *mask) {
    const int64_t targets = llround(mask->rate * (double)mask->positions);
    return targets < 1 ? 1 : targets > mask->positions ? mask->positions : targets;
}

static int32_t hide(const struct hrt_mask *mask, struct hrt_stream stream, uint64_t at,
                    int32_t id) {
    const uint64_t last = (uint64_t)mask->vocabulary - 1;
    const uint64_t kind = hrt_draw_below(stream, at + KIND, TENTHS);
    if (kind < MASKED) return (int32_t)last;
    return kind < MASKED + RANDOM ? (int32_t)hrt_draw_below(stream, at + TOKEN, last) : id;
}

void hrt_data_mask_sequence(const struct hrt_mask *mask, struct hrt_stream stream,
                            uint64_t sequence, int32_t *ids, int32_t *targets) {
    assert(mask->vocabulary >= 2);
    const uint64_t first = sequence * (uint64_t)mask->positions;
    int64_t missing = hrt_data_mask_targets(mask);
    for (int64_t t = 0; t < mask->positions; t++) {
        // `missing` positions are still to be chosen among those left: every choice is as likely.
        const uint64_t at = (first + (uint64_t)t) * DRAWS, left = (uint64_t)(mask->positions - t);
        const bool chosen = hrt_draw_below(stream, at + CHOICE, left) < (uint64_t)missing;
        targets[t] = chosen ? ids[t] : -1;
        if (!chosen) continue;
        ids[t] = hide(mask, stream, at, ids[t]);
        missing--;
    }
    assert(missing == 0);
}
