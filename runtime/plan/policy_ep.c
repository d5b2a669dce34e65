// ep: expert parallelism. Every chunk stays with its owner, and nothing else is held.
#include "runtime/plan/draft.h"
#include "runtime/plan/policies.h"

static enum hpl_status place(const struct hpl_problem *problem, struct hpl_plan *plan,
                             int64_t *share, struct hpl_work *work) {
    (void)share, (void)work;
    if (plan->capacity < problem->experts) return HPL_NO_ROOM;
    plan->experts = problem->experts;
    for (int32_t e = 0; e <= problem->experts; e++) plan->first[e] = e;
    for (int32_t e = 0; e < problem->experts; e++) plan->holder[e] = problem->owner[e];
    return HPL_OK;
}

const struct hpl_policy hpl_policy_ep = {
    .name = "ep",
    .summary = "Experts stay with their owners",
    .when = HPL_WHEN_FORECAST,
    .split = HPL_SPLIT_NEAREST,
    .place = place,
};
