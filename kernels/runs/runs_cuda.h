// runs on a device: launchers of what runs.h defines. See kernels/cuda/lane.h.
#ifndef HECATE_KERNELS_RUNS_CUDA_H
#define HECATE_KERNELS_RUNS_CUDA_H

#include "kernels/cuda/lane.h"
#include "kernels/runs/runs.h"

#ifdef __cplusplus
extern "C" {
#endif

void hkc_list_runs(struct hkc_lane *lane, int32_t *number, int32_t *mapped, const int32_t *map,
                   const struct hk_run *run, int64_t runs, int64_t begin, int64_t end,
                   int64_t origin);
void hkc_clip_starts(struct hkc_lane *lane, int32_t *first, const int32_t *start, int64_t count,
                     int64_t begin, int64_t end);

#ifdef __cplusplus
}
#endif

#endif
