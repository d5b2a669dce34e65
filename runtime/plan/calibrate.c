// calibrate.c: the second half of the paper's section 4.2.
#include "runtime/plan/calibrate.h"

#include "runtime/plan/work.h"

static enum hpl_status copy_plan(struct hpl_plan *to, const struct hpl_plan *from) {
    const int32_t holders = from->first[from->experts];
    if (to->capacity < holders) return HPL_NO_ROOM;
    to->experts = from->experts;
    for (int32_t e = 0; e <= from->experts; e++) to->first[e] = from->first[e];
    for (int32_t k = 0; k < holders; k++) to->holder[k] = from->holder[k];
    return HPL_OK;
}

static enum hpl_status level_of(const struct hpl_problem *problem, const struct hpl_plan *plan,
                                int64_t *level, struct hpl_work *work) {
    const struct hpl_work before = *work;
    int64_t *share = HPL_TAKE(work, plan->first[plan->experts], int64_t);
    struct hpl_level fraction = {0, 1};
    enum hpl_status status = HPL_NO_ROOM;
    if (share) {
        status = hpl_share(problem->topology, plan, problem->loads, problem->budget.slack, share,
                           &fraction, work);
    }
    *level = (fraction.num + fraction.den - 1) / fraction.den;
    *work = before;
    return status;
}

// The most chunks that one device receives on the way from `present` to `plan`, and all of them.
static enum hpl_status count_added(const struct hpl_problem *problem, const struct hpl_plan *plan,
                                   int64_t *most, int64_t *all, struct hpl_work *work) {
    const struct hpl_work before = *work;
    int32_t *more = HPL_TAKE(work, problem->topology->devices, int32_t);
    if (!more) return HPL_NO_ROOM;
    hpl_zero_i32(more, problem->topology->devices);
    for (int32_t k = 0; k < plan->first[plan->experts]; k++) more[plan->holder[k]]++;
    const struct hpl_plan *present = problem->present;
    for (int32_t k = 0; k < present->first[present->experts]; k++) more[present->holder[k]]--;
    *most = *all = 0;
    for (int32_t d = 0; d < problem->topology->devices; d++) {
        *most = hpl_max(*most, more[d]);
        *all += more[d];
    }
    *work = before;
    return HPL_OK;
}

enum hpl_status hpl_calibrate(const struct hpl_problem *problem, const struct hpl_policy *policy,
                              bool always, struct hpl_plan *plan, struct hpl_calibration *result,
                              struct hpl_work *work) {
    if (!problem->present) return HPL_BAD_ARGUMENT;
    *result = (struct hpl_calibration){0};
    enum hpl_status status = level_of(problem, problem->present, &result->level_before, work);
    if (status == HPL_OK) status = policy->place(problem, plan, NULL, work);
    if (status == HPL_OK) status = level_of(problem, plan, &result->level_after, work);
    int64_t most = 0;
    if (status == HPL_OK) status = count_added(problem, plan, &most, &result->added, work);
    if (status != HPL_OK) return status;

    const int64_t saved = result->level_before - result->level_after;
    result->gain = saved * problem->costs.row_compute;
    result->price = most * problem->costs.chunk_send;
    result->taken = saved > 0 && (always || result->gain > result->price);
    return result->taken ? HPL_OK : copy_plan(plan, problem->present);
}
