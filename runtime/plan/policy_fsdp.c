// fsdp: every device gathers every chunk and computes its own rows. Perfect balance of equal
// sources, at the price of moving everything.
#include "runtime/plan/draft.h"
#include "runtime/plan/policies.h"

enum hpl_status hpl_place_fsdp(const struct hpl_problem *problem, struct hpl_plan *plan,
                               int64_t *share, struct hpl_work *work) {
    (void)share, (void)work;
    const int32_t devices = problem->topology->devices;
    if ((int64_t)plan->capacity < (int64_t)problem->experts * devices) return HPL_NO_ROOM;
    plan->experts = problem->experts;
    for (int32_t e = 0; e < problem->experts; e++) {
        plan->first[e] = e * devices;
        for (int32_t d = 0; d < devices; d++) plan->holder[e * devices + d] = d;
    }
    plan->first[problem->experts] = problem->experts * devices;
    return HPL_OK;
}
