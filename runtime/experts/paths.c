#include "runtime/experts/paths.h"

#include <string.h>

// The next chunk, from *cursor on, that leaves the rank; -1: none.
static int64_t next_to_leave(const struct hrt_paths *paths, int32_t rank, uint32_t *cursor) {
    while (*cursor < paths->chunks) {
        const uint32_t chunk = (*cursor)++;
        if (paths->owner[chunk] == rank && paths->next[chunk] != rank) return chunk;
    }
    return -1;
}

int64_t hrt_experts_paths_order(const struct hrt_paths *paths, int64_t *order, uint32_t *scratch) {
    int64_t count = 0;
    memset(scratch, 0, (size_t)paths->ranks * sizeof *scratch);
    for (int32_t first = 0; first < paths->ranks; first++) {
        int32_t rank = first;
        for (;;) {
            const int64_t chunk = next_to_leave(paths, rank, &scratch[rank]);
            if (chunk < 0 && rank == first) break;
            if (chunk >= 0) order[count++] = chunk;
            rank = chunk < 0 ? first : paths->next[chunk];
        }
    }
    return count;
}

int64_t hrt_experts_paths_batch(const struct hrt_paths *paths, const int64_t *order, int64_t begin,
                                int64_t count, uint32_t most, uint32_t *scratch) {
    int64_t end = begin;
    memset(scratch, 0, (size_t)paths->ranks * sizeof *scratch);
    for (; end < count; end++) {
        uint32_t *from = &scratch[paths->owner[order[end]]];
        uint32_t *to = &scratch[paths->next[order[end]]];
        if (end > begin && (*from == most || *to == most)) break;
        ++*from;
        ++*to;
    }
    return end;
}
