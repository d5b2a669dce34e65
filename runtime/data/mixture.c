// The sources of a mixture's sequences, without a table.
#include "runtime/data/mixture.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/random.h"
#include "runtime/data/order.h"

enum { BLOCK = 256 };

struct hrt_mixture hrt_data_mixture(const double *share, int sources) {
    struct hrt_mixture mixture = {.sources = sources};
    double left = 0;
    for (int i = sources; i-- > 0;) {
        left += share[i];
        mixture.part[i] = (uint64_t)fmin(share[i] / left * 0x1p64, 0x1.fffffffffffffp63);
    }
    return mixture;
}

// A source's part of the first `sequences` that no source before it has.
static uint64_t part_of(const struct hrt_mixture *mixture, int source, uint64_t sequences) {
    if (source == mixture->sources - 1) return sequences;
    return (uint64_t)((unsigned __int128)sequences * mixture->part[source] >> 64);
}

struct hrt_turn hrt_data_mixture_turn(const struct hrt_mixture *mixture, uint64_t seed,
                                      uint64_t sequence) {
    if (mixture->sources == 1) return (struct hrt_turn){0, sequence};
    struct hrt_stream key = hrt_stream_make(seed, "order of a mixture", "");
    key.name = hrt_draw_bits(key, sequence / BLOCK);
    uint64_t left = sequence - sequence % BLOCK + hrt_data_permute(key, BLOCK, sequence % BLOCK);
    for (int i = 0;; i++) {
        const uint64_t before = part_of(mixture, i, left);
        if (part_of(mixture, i, left + 1) > before) return (struct hrt_turn){i, before};
        left -= before;
    }
}

void hrt_data_mixture_count(const struct hrt_mixture *mixture, uint64_t seed, uint64_t sequences,
                            uint64_t *count) {
    uint64_t left = sequences - sequences % BLOCK;
    for (int i = 0; i < mixture->sources; i++) {
        count[i] = part_of(mixture, i, left);
        left -= count[i];
    }
    for (uint64_t n = sequences - sequences % BLOCK; n < sequences; n++)
        count[hrt_data_mixture_turn(mixture, seed, n).source]++;
}

bool hrt_data_share_read(const char *text, char path[PATH_MAX], double *share,
                         struct hrt_error *error) {
    const char *equals = access(text, F_OK) == 0 ? NULL : strrchr(text, '=');
    char *end = NULL;
    *share = 0;
    if (snprintf(path, PATH_MAX, "%s", text) >= PATH_MAX)
        return hrt_fail(error, "'%.100s...' is too long a name", text);
    if (!equals) return true;
    path[equals - text] = '\0';
    *share = strtod(equals + 1, &end);
    return (end != equals + 1 && !*end && *share > 0 && isfinite(*share)) ||
           hrt_fail_usage(error, "data.train: '%s' is no file, and '%s' no positive share of '%s'",
                          text, equals + 1, path);
}
