// The order of rows: a counting sort by expert, stable in (token, choice).
#include "kernels/route/route.h"

#include <assert.h>

#include "kernels/cpu/observe.h"

void hk_route(int32_t *first, int32_t *pair, int32_t *slot, const int32_t *ids, int64_t tokens,
              int64_t topk, int64_t experts) {
    HK_OBSERVE("route", ((struct hk_work){.sizes = "tokens topk experts",
                                          .size = {tokens, topk, experts},
                                          .bytes = 4.0 * (double)(4 * tokens * topk)}))
    const int64_t pairs = tokens * topk;
    assert(pairs <= INT32_MAX);

    for (int64_t e = 0; e <= experts; e++) first[e] = 0;
    for (int64_t p = 0; p < pairs; p++) {
        assert(ids[p] < experts);
        if (ids[p] >= 0) first[ids[p] + 1]++;
    }
    for (int64_t e = 0; e < experts; e++) first[e + 1] += first[e];
    int32_t behind = first[experts];

    // first[e] serves as e's cursor and so ends as first[e + 1]: shift back.
    for (int64_t p = 0; p < pairs; p++) {
        const bool kept = ids[p] >= 0;
        const int32_t row = kept ? first[ids[p]]++ : behind++;
        pair[row] = (int32_t)p;
        slot[p] = kept ? row : -1;
    }
    for (int64_t e = experts; e > 0; e--) first[e] = first[e - 1];
    first[0] = 0;
}
