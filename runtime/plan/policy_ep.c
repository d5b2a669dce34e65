// ep: expert parallelism. Every chunk stays with its owner, and nothing else is held.
#include "runtime/plan/draft.h"
#include "runtime/plan/policies.h"

enum hpl_status hpl_place_ep(const struct hpl_problem *problem, struct hpl_plan *plan,
                             int64_t *share, struct hpl_work *work) {
    (void)share, (void)work;
    if (plan->capacity < problem->experts) return HPL_NO_ROOM;
    plan->experts = problem->experts;
    for (int32_t e = 0; e <= problem->experts; e++) plan->first[e] = e;
    for (int32_t e = 0; e < problem->experts; e++) plan->holder[e] = problem->owner[e];
    return HPL_OK;
}
