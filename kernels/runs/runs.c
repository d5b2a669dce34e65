// CPU twins of lists of runs.
#include "kernels/runs/runs.h"

void hk_list_runs(int32_t *number, int32_t *mapped, const int32_t *map, const struct hk_run *run,
                  int64_t runs, int64_t begin, int64_t end, int64_t origin) {
    int64_t at = 0;
    for (int64_t r = 0; r < runs; r++) {
        const struct hk_part part = hk_run_part(run[r], begin, end);
        const int32_t first = run[r].from + part.skip;
        for (int32_t i = 0; i < part.count; i++) number[at + i] = (int32_t)(first + i - origin);
        for (int32_t i = 0; i < part.count && mapped; i++) mapped[at + i] = map[first + i];
        at += part.count;
    }
}

void hk_clip_starts(int32_t *first, const int32_t *start, int64_t count, int64_t begin,
                    int64_t end) {
    for (int64_t i = 0; i < count; i++) {
        const int64_t place = start[i] < begin ? begin : start[i] > end ? end : start[i];
        first[i] = (int32_t)(place - begin);
    }
}
