// episode.c: see episode.h.
#include "runtime/plan/episode.h"

#include <string.h>

#include "runtime/plan/plan.h"
#include "runtime/plan/reshard.h"
#include "runtime/plan/share.h"
#include "runtime/plan/slots.h"
#include "runtime/plan/work.h"

// Thousandths of the mean load given up to keep rows near (docs/planner.md).
enum { SLACK = 10 };

// ---- memory

enum { ARRAYS = 8, ALIGN = 16 };

size_t hpl_episode_bytes(const struct hpl_episode *e, int32_t holders) {
    const int32_t devices = e->topology->devices, nodes = e->topology->nodes;
    const size_t cells = (size_t)e->experts * (size_t)devices;
    const size_t chunks = (size_t)e->layers * (size_t)e->experts;
    const size_t plan = hpl_work_bytes(e->experts, devices, nodes, holders);
    const size_t owners = hpl_reshard_work_bytes(e->layers, e->experts, devices, nodes);
    return cells * (sizeof *e->forecast + sizeof *e->sum) +
           chunks * (sizeof *e->began + sizeof *e->rows) +
           (size_t)holders * (sizeof *e->share + sizeof *e->spare.holder) +
           ((size_t)e->experts + 1) * sizeof *e->spare.first + ARRAYS * ALIGN +
           (plan > owners ? plan : owners);
}

enum hpl_status hpl_episode_begin(struct hpl_episode *e, struct hpl_work memory, int32_t holders) {
    const int64_t cells = (int64_t)e->experts * e->topology->devices;
    const int64_t chunks = (int64_t)e->layers * e->experts;
    e->began = HPL_TAKE(&memory, chunks, int32_t);
    e->forecast = HPL_TAKE(&memory, cells, uint32_t);
    e->sum = HPL_TAKE(&memory, cells, uint64_t);
    e->share = HPL_TAKE(&memory, holders, int64_t);
    e->rows = HPL_TAKE(&memory, chunks, int64_t);
    e->spare = (struct hpl_plan){.experts = e->experts,
                                 .capacity = holders,
                                 .first = HPL_TAKE(&memory, (int64_t)e->experts + 1, int32_t),
                                 .holder = HPL_TAKE(&memory, holders, int32_t)};
    e->shared = -1;
    e->work = memory;
    if (!e->began || !e->forecast || !e->sum || !e->share || !e->rows || !e->spare.first ||
        !e->spare.holder)
        return HPL_NO_ROOM;
    for (int64_t i = 0; i < chunks; i++) e->began[i] = e->owner[i];
    return HPL_OK;
}

// ---- terms

// Our own policies split rows by exact quotas, or evenly where that is wanted; others in their way.
static enum hpl_split split_of(const struct hpl_policy *policy, bool even) {
    if (!policy->calibrates) return policy->split;
    if (!even) return HPL_SPLIT_QUOTA;
    return policy->split == HPL_SPLIT_QUOTA ? HPL_SPLIT_NEAREST : policy->split;
}

bool hpl_episode_calibrates(const struct hpl_episode *e) {
    return e->policy->calibrates && e->calibrates != HPL_CALIBRATES_NEVER;
}

bool hpl_episode_decides(const struct hpl_episode *e) {
    return hpl_episode_calibrates(e) || e->policy->when == HPL_WHEN_EXACT ||
           e->split == HPL_SPLIT_QUOTA || e->split == HPL_SPLIT_PLANNED;
}

// A chunk takes whole cache lines.
static int64_t bytes_each(int64_t bytes, int64_t serves) {
    return (bytes + 63) / 64 * 64 / serves;
}

// Rows that pay for a replica that serves so many iterations.
static int32_t replica_rows(const struct hpl_sizes *s, int64_t serves) {
    return hpl_paying_rows(bytes_each(s->param_bytes, serves), bytes_each(s->grad_bytes, serves),
                           s->row_bytes);
}

// The terms for the first layer, or for another, of transfers that serve so many iterations.
static struct hpl_problem terms_of(const struct hpl_episode *e, const struct hpl_movement *m,
                                   const struct hpl_sizes *s, int64_t serves, bool other) {
    const int64_t params = bytes_each(s->param_bytes, serves);
    const int64_t grads = bytes_each(s->grad_bytes, serves);
    const int64_t worth = 100 - m->import_discount;
    const int64_t gather = other ? m->gather_hidden : m->gather_hidden_first;
    const int64_t reduce = other ? m->reduce_hidden : m->reduce_hidden_first;
    return (struct hpl_problem){
        .experts = e->experts,
        .budget = {.slots = (int32_t)hpl_min(m->slots, e->experts),
                   .entries = (int32_t)hpl_min(m->overlap, e->experts),
                   .chunk_bytes = m->chunk_bytes,
                   .window_bytes = m->window_bytes,
                   .slack = SLACK,
                   // Replicas that balance does not need before the gate are left to calibration.
                   .replica_rows = hpl_episode_calibrates(e) ? INT32_MAX : replica_rows(s, serves),
                   .import_rows = 1,
                   .gather_hidden = (int32_t)hpl_min(gather, INT32_MAX),
                   .reduce_hidden = (int32_t)hpl_min(reduce, INT32_MAX),
                   .gather_rows = hpl_paying_rows(params * worth / 100, 0, s->row_bytes),
                   .reduce_rows = hpl_paying_rows(0, grads * worth / 100, s->row_bytes)},
        .costs = {.row_compute = m->row_compute,
                  .row_send = m->row_send,
                  .row_cross = m->row_cross,
                  .chunk_send = m->chunk_send,
                  .chunk_near = m->chunk_near,
                  .grad_send = m->grad_send},
    };
}

bool hpl_episode_move(struct hpl_episode *e, const struct hpl_movement *movement,
                      const struct hpl_sizes *sizes) {
    e->policy = hpl_policy_find(movement->policy);
    if (!e->policy) return false;
    e->split = split_of(e->policy, movement->even);
    e->known = movement->known;
    e->calibrates = movement->calibrate;
    e->window = (int32_t)movement->window;
    const bool lasts = movement->lifetime == HPL_LIFETIME_STEP;
    e->serves = lasts ? hpl_max(movement->iterations, 1) : 1;
    e->replica_rows = replica_rows(sizes, e->serves);
    for (int other = 0; other < 2; other++) {
        struct hpl_problem problem = terms_of(e, movement, sizes, e->serves, other);
        e->plan[other] = (struct hpl_terms){problem.budget, problem.costs};
        problem = terms_of(e, movement, sizes, 1, other);
        hpl_calibration_terms(&problem);
        e->late[other] = (struct hpl_terms){problem.budget, problem.costs};
    }
    return true;
}

// ---- plans

static struct hpl_loads loads_of(const struct hpl_episode *e, const uint32_t *rows) {
    return (struct hpl_loads){e->topology->devices, e->experts, rows};
}

static struct hpl_problem problem_of(const struct hpl_episode *e, int32_t layer,
                                     const struct hpl_terms terms[2],
                                     const struct hpl_loads *loads) {
    const int32_t *owner = e->policy->when == HPL_WHEN_PERIODIC ? e->began : e->owner;
    return (struct hpl_problem){.topology = e->topology,
                                .experts = e->experts,
                                .owner = owner + (int64_t)layer * e->experts,
                                .loads = loads,
                                .budget = terms[layer > 0].budget,
                                .costs = terms[layer > 0].costs};
}

bool hpl_episode_forecast(struct hpl_episode *e, int32_t layer) {
    const int64_t cells = (int64_t)e->experts * e->topology->devices;
    uint64_t count = 0;
    for (int32_t back = 1; back <= e->window; back++) {
        const uint32_t *rows = e->counts(e->context, layer, back);
        if (!rows) break;
        for (int64_t i = 0; i < cells; i++) e->sum[i] = (count ? e->sum[i] : 0) + rows[i];
        count++;
    }
    const uint32_t *given = e->given ? e->given + layer * cells : NULL;
    if (count > 0) {
        for (int64_t i = 0; i < cells; i++)
            e->forecast[i] = (uint32_t)((e->sum[i] + count / 2) / count);
    } else {
        for (int64_t i = 0; i < cells; i++) e->forecast[i] = given ? given[i] : 0;
    }
    return count > 0 || given;
}

// Sets e->forecast to the counts to come where they are known, else to the forecast. False: zeros.
static bool expect(struct hpl_episode *e, int32_t layer) {
    const int64_t cells = (int64_t)e->experts * e->topology->devices;
    const uint32_t *rows = e->known ? e->counts(e->context, layer, 0) : NULL;
    if (!rows) return hpl_episode_forecast(e, layer);
    memcpy(e->forecast, rows, (size_t)cells * sizeof *rows);
    return true;
}

// Known counts are those of the gate: replicas of calibration travel with the rest, and so do those that pay by rows.
static enum hpl_status add_what_pays(struct hpl_episode *e, int32_t layer,
                                     struct hpl_plan *placed) {
    const struct hpl_loads loads = loads_of(e, e->forecast);
    struct hpl_problem problem = problem_of(e, layer, e->late, &loads);
    struct hpl_calibration result;
    enum hpl_status status =
        hpl_episode_calibrate(e, layer, e->serves, e->forecast, placed, &result);
    e->shared = -1;
    if (status != HPL_OK) return status;
    problem.budget.replica_rows = e->replica_rows;
    problem.budget.import_rows = INT32_MAX;
    problem.present = placed;
    status = hpl_place(e->policy, &problem, &e->spare, e->share, &e->work);
    return status == HPL_OK ? hpl_plan_copy(placed, &e->spare) : status;
}

enum hpl_status hpl_episode_plan(struct hpl_episode *e, int32_t layer, const uint32_t *exact,
                                 struct hpl_plan *placed) {
    const bool behind = e->policy->when == HPL_WHEN_EXACT;
    const struct hpl_loads loads = loads_of(e, behind ? exact : e->forecast);
    const struct hpl_problem problem = problem_of(e, layer, e->plan, &loads);
    e->shared = -1;
    if (e->policy->when == HPL_WHEN_PERIODIC) return HPL_OK;
    if (behind || expect(e, layer) || hpl_from_shards(e->policy)) {
        const enum hpl_status status = hpl_place(e->policy, &problem, placed, e->share, &e->work);
        const bool adds = e->known && hpl_episode_calibrates(e);
        return status == HPL_OK && adds ? add_what_pays(e, layer, placed) : status;
    }
    return hpl_plan_of_owners(placed, e->experts, problem.owner);
}

// Rows that pay for a transfer in one of the iterations that it serves.
static int32_t rows_each(int32_t rows, int64_t left) {
    return (int32_t)(left > 1 ? (rows + left - 1) / left : rows);
}

enum hpl_status hpl_episode_calibrate(struct hpl_episode *e, int32_t layer, int64_t left,
                                      const uint32_t *exact, struct hpl_plan *placed,
                                      struct hpl_calibration *result) {
    const struct hpl_loads loads = loads_of(e, exact);
    struct hpl_problem problem = problem_of(e, layer, e->late, &loads);
    problem.budget.gather_rows = rows_each(problem.budget.gather_rows, left);
    problem.budget.reduce_rows = rows_each(problem.budget.reduce_rows, left);
    problem.serves = left;
    *result = (struct hpl_calibration){0};
    if (!hpl_episode_calibrates(e)) return HPL_OK;
    problem.present = placed;
    const bool always = e->calibrates == HPL_CALIBRATES_ALWAYS;
    const enum hpl_status status =
        hpl_calibrate(&problem, e->policy, e->split, always, &e->spare, e->share, result, &e->work);
    if (status != HPL_OK) return status;
    if (e->split == HPL_SPLIT_QUOTA) e->shared = layer;
    return result->taken ? hpl_plan_copy(placed, &e->spare) : HPL_OK;
}

enum hpl_status hpl_episode_divide(struct hpl_episode *e, int32_t layer, const uint32_t *exact,
                                   const struct hpl_plan *placed) {
    const bool shared = e->split != HPL_SPLIT_QUOTA || e->shared == layer;
    const struct hpl_loads loads = loads_of(e, exact);
    struct hpl_level level;
    e->shared = -1;
    return shared ? HPL_OK
                  : hpl_share(e->topology, placed, &loads, e->plan[layer > 0].budget.slack,
                              e->share, &level, &e->work);
}

enum hpl_status hpl_episode_route(struct hpl_episode *e, const uint32_t *exact,
                                  const struct hpl_plan *placed, int32_t rank, uint32_t *rows) {
    const struct hpl_loads loads = loads_of(e, exact);
    if (e->split == HPL_SPLIT_QUOTA || e->split == HPL_SPLIT_PLANNED)
        return hpl_route(e->topology, placed, &loads, e->share, rank, rows, &e->work);
    hpl_route_even(e->topology, placed, &loads, hpl_split_even(e->split), rank, rows);
    return HPL_OK;
}

enum hpl_status hpl_episode_route_part(struct hpl_episode *e, const uint32_t *exact,
                                       const struct hpl_plan *placed, int32_t rank,
                                       const struct hpl_part *part) {
    const struct hpl_loads loads = loads_of(e, exact);
    if (e->split == HPL_SPLIT_QUOTA || e->split == HPL_SPLIT_PLANNED)
        return hpl_route_part(e->topology, placed, &loads, e->share, rank, part, &e->work);
    struct hpl_work work = e->work;
    uint32_t *rows = HPL_TAKE(&work, placed->first[placed->experts], uint32_t);
    if (!rows) return HPL_NO_ROOM;
    hpl_part_begin(part, placed);
    for (int32_t source = 0; source < loads.devices; source++) {
        hpl_route_even(e->topology, placed, &loads, hpl_split_even(e->split), source, rows);
        hpl_part_add(part, placed, rank, source, rows);
    }
    return HPL_OK;
}

// ---- between steps

enum hpl_status hpl_episode_place_anew(struct hpl_episode *e, int32_t layer,
                                       struct hpl_plan *placed) {
    const struct hpl_loads loads = loads_of(e, e->forecast);
    struct hpl_problem problem = problem_of(e, layer, e->plan, &loads);
    hpl_episode_forecast(e, layer);
    problem.present = placed;
    const enum hpl_status status = hpl_place(e->policy, &problem, &e->spare, e->share, &e->work);
    return status == HPL_OK ? hpl_plan_copy(placed, &e->spare) : status;
}

// Among the holders the one that owns fewest of the chunks so far.
static int32_t new_owner(const struct hpl_plan *plan, int32_t expert, const int64_t *owned) {
    int32_t best = plan->holder[plan->first[expert]];
    for (int32_t k = plan->first[expert]; k < plan->first[expert + 1]; k++) {
        if (owned[plan->holder[k]] < owned[best]) best = plan->holder[k];
    }
    return best;
}

void hpl_episode_follow(const struct hpl_episode *e, int32_t layer, const struct hpl_plan *placed,
                        int64_t *owned, int32_t *next) {
    const int32_t *owner = e->owner + (int64_t)layer * e->experts;
    for (int32_t i = 0; i < e->experts; i++) {
        next[i] = hpl_plan_holds(placed, i, owner[i]) ? owner[i] : new_owner(placed, i, owned);
        owned[next[i]]++;
    }
}

enum hpl_status hpl_episode_spread(struct hpl_episode *e, int32_t *next) {
    const int32_t experts = e->experts;
    bool known = e->policy->calibrates;
    for (int32_t layer = 0; known && layer < e->layers; layer++) {
        known = hpl_episode_forecast(e, layer);
        int64_t *rows = e->rows + (int64_t)layer * experts;
        hpl_zero_i64(rows, experts);
        for (int32_t d = 0; d < e->topology->devices; d++) {
            for (int32_t i = 0; i < experts; i++) rows[i] += e->forecast[(int64_t)d * experts + i];
        }
    }
    if (known)
        return hpl_reshard_near(e->topology, e->layers, experts, e->rows, e->plan[1].budget.entries,
                                SLACK, e->owner, next, &e->work);
    for (int64_t i = 0; i < (int64_t)e->layers * experts; i++) next[i] = e->owner[i];
    return HPL_OK;
}

enum hpl_status hpl_episode_try(struct hpl_episode *e) {
    const int64_t cells = (int64_t)e->experts * e->topology->devices;
    const struct hpl_loads loads = loads_of(e, e->forecast);
    const struct hpl_problem problem = problem_of(e, 0, e->plan, &loads);
    for (int64_t i = 0; i < cells; i++) e->forecast[i] = 0;
    const enum hpl_status status = hpl_problem_check(&problem);
    return status == HPL_OK ? hpl_place(e->policy, &problem, &e->spare, e->share, &e->work)
                            : status;
}
