// calibrate.c: the second half of the paper's section 4.2.
#include "runtime/plan/calibrate.h"

#include "runtime/plan/plan.h"
#include "runtime/plan/share.h"
#include "runtime/plan/tally.h"
#include "runtime/plan/work.h"

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

// Rows that enter or leave the busiest node when holders get `share`: rows of an expert stay in their
// node as far as its holders compute them.
static enum hpl_status busiest_link(const struct hpl_problem *problem, const struct hpl_plan *plan,
                                    const int64_t *share, int64_t *most, struct hpl_work *work) {
    const struct hpl_topology *topology = problem->topology;
    const int32_t nodes = topology->nodes, experts = problem->experts;
    int64_t *out = HPL_TAKE(work, nodes, int64_t), *in = HPL_TAKE(work, nodes, int64_t);
    int64_t *here = HPL_TAKE(work, nodes, int64_t);
    uint32_t *rows = HPL_TAKE(work, (int64_t)nodes * experts, uint32_t);
    if (!out || !in || !here || !rows) return HPL_NO_ROOM;
    hpl_tally_nodes(topology, problem->loads, rows);
    hpl_zero_i64(out, nodes);
    hpl_zero_i64(in, nodes);
    for (int32_t e = 0; e < experts; e++) {
        hpl_zero_i64(here, nodes);
        for (int32_t k = plan->first[e]; k < plan->first[e + 1]; k++)
            here[topology->node[plan->holder[k]]] += share[k];
        for (int32_t n = 0; n < nodes; n++) {
            const int64_t more = here[n] - rows[(int64_t)n * experts + e];
            *(more > 0 ? &in[n] : &out[n]) += more > 0 ? more : -more;
        }
    }
    *most = 0;
    for (int32_t n = 0; n < nodes; n++) *most = hpl_max(*most, hpl_max(out[n], in[n]));
    return HPL_OK;
}

static enum hpl_status quota_level(const struct hpl_problem *problem, const struct hpl_plan *plan,
                                   int64_t *share, int64_t *level, int64_t *cross,
                                   struct hpl_work *work) {
    struct hpl_level fraction = {0, 1};
    const enum hpl_status status = hpl_share(problem->topology, plan, problem->loads,
                                             problem->budget.slack, share, &fraction, work);
    *level = (fraction.num + fraction.den - 1) / fraction.den;
    if (status != HPL_OK || problem->costs.row_cross == 0) return status;
    return busiest_link(problem, plan, share, cross, work);
}

// The largest load of a device, and where it is weighed the rows of the busiest node's link. `share` gets
// the shares of the plan's holders, under quotas.
static enum hpl_status level_of(const struct hpl_problem *problem, const struct hpl_plan *plan,
                                enum hpl_split split, int64_t *share, int64_t *level,
                                int64_t *cross, struct hpl_work *work) {
    const struct hpl_work before = *work;
    *cross = 0;
    const enum hpl_status status = split == HPL_SPLIT_QUOTA
                                       ? quota_level(problem, plan, share, level, cross, work)
                                       : even_level(problem, plan, split, level, work);
    *work = before;
    return status;
}

// Where chunks arrive on the way from a plan to a larger one.
struct added {
    int64_t device, node; // The most that one device receives, and that enter one node.
    int64_t late;         // The most that enter a node, with gradients that nothing hides.
    int64_t all;
};

static enum hpl_status count_added(const struct hpl_problem *problem, const struct hpl_plan *plan,
                                   struct added *added, struct hpl_work *work) {
    const struct hpl_work before = *work;
    const struct hpl_topology *topology = problem->topology;
    const struct hpl_plan *present = problem->present;
    int32_t *more = HPL_TAKE(work, topology->devices, int32_t);
    int32_t *entered = HPL_TAKE(work, topology->nodes, int32_t);
    int32_t *earlier = HPL_TAKE(work, topology->nodes, int32_t);
    int32_t *had = HPL_TAKE(work, topology->nodes, int32_t);
    if (!more || !entered || !earlier || !had) return HPL_NO_ROOM;
    hpl_zero_i32(more, topology->devices);
    hpl_zero_i32(entered, topology->nodes);
    hpl_zero_i32(earlier, topology->nodes);
    for (int32_t n = 0; n < topology->nodes; n++)
        had[n] = -1; // The last expert that it had or got.
    for (int32_t e = 0; e < plan->experts; e++) {
        for (int32_t k = present->first[e]; k < present->first[e + 1]; k++) {
            const int32_t n = topology->node[present->holder[k]];
            more[present->holder[k]]--;
            earlier[n] += had[n] != e && topology->node[problem->owner[e]] != n;
            had[n] = e;
        }
        for (int32_t k = plan->first[e]; k < plan->first[e + 1]; k++) {
            const int32_t n = topology->node[plan->holder[k]];
            more[plan->holder[k]]++;
            entered[n] += had[n] != e;
            had[n] = e;
        }
    }
    *added = (struct added){0};
    for (int32_t d = 0; d < topology->devices; d++) {
        added->device = hpl_max(added->device, more[d]);
        added->all += more[d];
    }
    for (int32_t n = 0; n < topology->nodes; n++) {
        const int64_t hidden = hpl_max(0, problem->budget.reduce_hidden - earlier[n]);
        added->node = hpl_max(added->node, entered[n]);
        added->late = hpl_max(added->late, entered[n] - hidden);
    }
    *work = before;
    return HPL_OK;
}

// Sets the levels of the result: those of the present plan, and of the one that the policy makes of it.
static enum hpl_status compare(const struct hpl_problem *problem, const struct hpl_policy *policy,
                               enum hpl_split split, struct hpl_plan *plan, int64_t *share,
                               int64_t *share_after, struct hpl_calibration *result,
                               struct hpl_work *work) {
    enum hpl_status status = level_of(problem, problem->present, split, share,
                                      &result->level_before, &result->cross_before, work);
    if (status == HPL_OK) status = hpl_place(policy, problem, plan, NULL, work);
    if (status == HPL_OK)
        status = level_of(problem, plan, split, share_after, &result->level_after,
                          &result->cross_after, work);
    return status;
}

static void weigh(const struct hpl_problem *problem, const struct added *added, bool always,
                  struct hpl_calibration *result) {
    const struct hpl_costs *costs = &problem->costs;
    const int64_t serves = hpl_max(problem->serves, 1);
    const int64_t saved = result->level_before - result->level_after;
    const int64_t crossed = result->cross_before - result->cross_after;
    result->added = added->all;
    result->gain =
        hpl_cost(saved * serves, costs->row_compute) + hpl_cost(crossed * serves, costs->row_cross);
    result->wait = costs->chunk_near > 0 ? hpl_cost(added->node, costs->chunk_send) +
                                               hpl_cost(added->device, costs->chunk_near)
                                         : hpl_cost(added->device, costs->chunk_send);
    result->price = result->wait + hpl_cost(added->late, costs->grad_send);
    const bool saves = result->gain > 0 || (result->gain == 0 && saved > 0);
    result->taken = saves && (always || result->gain > result->price);
}

enum hpl_status hpl_calibrate(const struct hpl_problem *problem, const struct hpl_policy *policy,
                              enum hpl_split split, bool always, struct hpl_plan *plan,
                              int64_t *share, struct hpl_calibration *result,
                              struct hpl_work *work) {
    if (!problem->present || !policy->calibrates || split == HPL_SPLIT_PLANNED) {
        return HPL_BAD_ARGUMENT;
    }
    *result = (struct hpl_calibration){0};
    const struct hpl_work before = *work;
    int64_t *after = HPL_TAKE(work, plan->capacity, int64_t);
    if (!after) return HPL_NO_ROOM;
    struct added added = {0};
    enum hpl_status status = compare(problem, policy, split, plan, share, after, result, work);
    if (status == HPL_OK) status = count_added(problem, plan, &added, work);
    *work = before;
    if (status != HPL_OK) return status;
    weigh(problem, &added, always, result);
    if (!result->taken) return hpl_plan_copy(plan, problem->present);
    for (int32_t k = 0; k < plan->first[plan->experts]; k++) share[k] = after[k];
    return HPL_OK;
}

void hpl_calibration_terms(struct hpl_problem *problem) {
    struct hpl_budget *budget = &problem->budget;
    budget->entries = problem->experts;
    budget->window_bytes = 0;
    budget->gather_hidden = 0;
    budget->replica_rows = INT32_MAX;
    if (problem->costs.row_cross == 0) budget->import_rows = INT32_MAX;
    problem->costs.row_compute *= 3;
    problem->costs.row_cross *= 4;
}
