// The ways of chunks to their new owners: in which order, and which ones at a time. Pure, and the same on all ranks.
#ifndef HECATE_RUNTIME_EXPERTS_PATHS_H
#define HECATE_RUNTIME_EXPERTS_PATHS_H

#include <stdint.h>

// Owners of the chunks now, and the next ones. Borrowed.
struct hrt_paths {
    const int32_t *owner, *next; // [chunks]
    int64_t chunks;
    int32_t ranks;
};

// Lists the chunks that move: each is followed by one that its new owner sends, if that has any left. So a rank gives
// memory back before it takes more. Returns how many there are.
//   order    [chunks] their numbers
//   scratch  [ranks]
int64_t hrt_experts_paths_order(const struct hrt_paths *paths, int64_t *order, uint32_t *scratch);

// The end of the batch of `order` [count] that begins at `begin`, which is before `count`: as many chunks as there may
// be without a rank that sends and receives more than `most` of them.
int64_t hrt_experts_paths_batch(const struct hrt_paths *paths, const int64_t *order, int64_t begin,
                                int64_t count, uint32_t most, uint32_t *scratch);

#endif
