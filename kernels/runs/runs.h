// runs: lists of numbers that are made of runs of consecutive ones: the rows of a wave of an exchange.
#ifndef HECATE_KERNELS_RUNS_H
#define HECATE_KERNELS_RUNS_H

#include "kernels/scalar.h"
#include "kernels/types.h"

// Numbers from .. from + count - 1 have the places at .. at + count - 1 of an order.
struct hk_run {
    int32_t at, from, count;
};

// The part of a run at places begin .. end - 1: `count` numbers behind the first `skip`.
struct hk_part {
    int32_t skip, count;
};

HK_SCALAR struct hk_part hk_run_part(struct hk_run run, int64_t begin, int64_t end) {
    const int64_t first = run.at > begin ? run.at : begin;
    const int64_t last = run.at + (int64_t)run.count < end ? run.at + (int64_t)run.count : end;
    const struct hk_part part = {(int32_t)(first - run.at),
                                 (int32_t)(last > first ? last - first : 0)};
    return part;
}

// Lists the numbers at places begin .. end - 1 of every run, one run behind the other.
//   number  [all of them] each less `origin`
//   mapped  NULL, or as long: map[number] of each in place of the number
void hk_list_runs(int32_t *number, int32_t *mapped, const int32_t *map, const struct hk_run *run,
                  int64_t runs, int64_t begin, int64_t end, int64_t origin);

// first[i] = start[i] - begin, clipped to 0 .. end - begin: the place of start[i] in the window begin .. end - 1.
void hk_clip_starts(int32_t *first, const int32_t *start, int64_t count, int64_t begin,
                    int64_t end);

#endif
