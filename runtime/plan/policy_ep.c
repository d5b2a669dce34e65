// ep: expert parallelism. Every chunk stays with its owner, and nothing else is held.
#include "runtime/plan/plan.h"
#include "runtime/plan/policies.h"

enum hpl_status hpl_place_ep(const struct hpl_problem *problem, struct hpl_plan *plan,
                             int64_t *share, struct hpl_work *work) {
    (void)share, (void)work;
    return hpl_plan_of_owners(plan, problem->experts, problem->owner);
}
