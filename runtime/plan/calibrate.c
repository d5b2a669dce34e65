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

// The largest device load under an even split, by routing every rank.
static enum hpl_status even_level(const struct hpl_problem *problem, const struct hpl_plan *plan,
                                  enum hpl_split split, int64_t *level, struct hpl_work *work) {
    const struct hpl_topology *topology = problem->topology;
    uint32_t *rows = HPL_TAKE(work, plan->first[plan->experts], uint32_t);
    int64_t *load = HPL_TAKE(work, topology->devices, int64_t);
    if (!rows || !load) return HPL_NO_ROOM;
    hpl_zero_i64(load, topology->devices);
    for (int32_t rank = 0; rank < topology->devices; rank++) {
        hpl_route_even(topology, plan, problem->loads, hpl_split_even(split), rank, rows);
        for (int32_t k = 0; k < plan->first[plan->experts]; k++) load[plan->holder[k]] += rows[k];
    }
    *level = 0;
    for (int32_t d = 0; d < topology->devices; d++) {
        const int64_t speed = topology->speed[d];
        *level = hpl_max(*level, (load[d] + speed - 1) / speed);
    }
    return HPL_OK;
}

static enum hpl_status quota_level(const struct hpl_problem *problem, const struct hpl_plan *plan,
                                   int64_t *level, struct hpl_work *work) {
    int64_t *share = HPL_TAKE(work, plan->first[plan->experts], int64_t);
    struct hpl_level fraction = {0, 1};
    if (!share) return HPL_NO_ROOM;
    const enum hpl_status status = hpl_share(problem->topology, plan, problem->loads,
                                             problem->budget.slack, share, &fraction, work);
    *level = (fraction.num + fraction.den - 1) / fraction.den;
    return status;
}

static enum hpl_status level_of(const struct hpl_problem *problem, const struct hpl_plan *plan,
                                enum hpl_split split, int64_t *level, struct hpl_work *work) {
    const struct hpl_work before = *work;
    const enum hpl_status status = split == HPL_SPLIT_QUOTA
                                       ? quota_level(problem, plan, level, work)
                                       : even_level(problem, plan, split, level, work);
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
                              enum hpl_split split, bool always, struct hpl_plan *plan,
                              struct hpl_calibration *result, struct hpl_work *work) {
    if (!problem->present || !policy->calibrates || split == HPL_SPLIT_PLANNED) {
        return HPL_BAD_ARGUMENT;
    }
    *result = (struct hpl_calibration){0};
    enum hpl_status status =
        level_of(problem, problem->present, split, &result->level_before, work);
    if (status == HPL_OK) status = hpl_place(policy, problem, plan, NULL, work);
    if (status == HPL_OK) status = level_of(problem, plan, split, &result->level_after, work);
    int64_t most = 0;
    if (status == HPL_OK) status = count_added(problem, plan, &most, &result->added, work);
    if (status != HPL_OK) return status;

    const int64_t saved = result->level_before - result->level_after;
    result->gain = saved * problem->costs.row_compute;
    result->price = most * problem->costs.chunk_send;
    result->taken = saved > 0 && (always || result->gain > result->price);
    return result->taken ? HPL_OK : copy_plan(plan, problem->present);
}

void hpl_calibration_terms(struct hpl_problem *problem) {
    problem->budget.entries = problem->experts;
    problem->budget.window_bytes = 0;
    problem->budget.replica_rows = problem->budget.import_rows = INT32_MAX;
    problem->costs.row_compute *= 3;
}
