// policy.c: the table of policies, calling them, and the check of what they are given.
#include "runtime/plan/policies.h"

#define HPL_POLICY(id, when_, split_, replicas_, collective_, gate, programs_, text)               \
    {.name = #id,                                                                                  \
     .summary = text,                                                                              \
     .when = HPL_WHEN_##when_,                                                                     \
     .split = HPL_SPLIT_##split_,                                                                  \
     .replicas = HPL_REPLICAS_##replicas_,                                                         \
     .collective = HPL_COLLECTIVE_##collective_,                                                   \
     .programs = programs_,                                                                        \
     .calibrates = HPL_GATE_##gate == HPL_GATE_CALIBRATED,                                         \
     .place = hpl_place_##id},
const struct hpl_policy hpl_policies[] = {
#include "runtime/plan/policies.def"
};

const char *const hpl_collective_names[HPL_COLLECTIVES] = {
    [HPL_COLLECTIVE_NONE] = "nothing moves",
    [HPL_COLLECTIVE_SPARSE] = "sparse all-gather, sparse reduce-scatter",
    [HPL_COLLECTIVE_BROADCAST] = "broadcast, reduce",
    [HPL_COLLECTIVE_RELAY] = "relay inside nodes",
    [HPL_COLLECTIVE_DIRECT] = "point to point",
    [HPL_COLLECTIVE_ALL_TO_ALL] = "all-to-all of shards",
    [HPL_COLLECTIVE_ALL_GATHER] = "all-gather, reduce-scatter of shards",
    [HPL_COLLECTIVE_EXCHANGE] = "sums over copies that stay",
};

const int32_t hpl_policy_count = sizeof hpl_policies / sizeof *hpl_policies;

enum hpl_status hpl_place(const struct hpl_policy *policy, const struct hpl_problem *problem,
                          struct hpl_plan *plan, int64_t *share, struct hpl_work *work) {
    struct hpl_work own = *work; // Gives the policy's memory back.
    return policy->place(problem, plan, share, &own);
}

static bool same_text(const char *a, const char *b) {
    while (*a && *a == *b) a++, b++;
    return *a == *b;
}

const struct hpl_policy *hpl_policy_find(const char *name) {
    for (int32_t i = 0; i < hpl_policy_count; i++) {
        if (same_text(hpl_policies[i].name, name)) return &hpl_policies[i];
    }
    return NULL;
}

static bool topology_is_sound(const struct hpl_topology *topology) {
    if (topology->nodes < 1 || topology->devices < topology->nodes) return false;
    if (topology->devices > HPL_DEVICES_MAX || topology->first[0] != 0) return false;
    for (int32_t n = 0; n < topology->nodes; n++) {
        if (topology->first[n] >= topology->first[n + 1]) return false;
        if (topology->first[n + 1] > topology->devices) return false;
        for (int32_t d = topology->first[n]; d < topology->first[n + 1]; d++) {
            if (topology->node[d] != n) return false;
            if (topology->speed[d] < 1 || topology->speed[d] > HPL_SPEED_MAX) return false;
        }
    }
    return topology->first[topology->nodes] == topology->devices;
}

static bool prices_are_sound(const struct hpl_costs *costs) {
    const int64_t price[] = {costs->row_compute, costs->row_send,   costs->chunk_send,
                             costs->grad_send,   costs->chunk_near, costs->row_cross};
    for (unsigned i = 0; i < sizeof price / sizeof *price; i++) {
        if (price[i] < 0 || price[i] > HPL_PRICE_MAX) return false;
    }
    return true;
}

enum hpl_status hpl_problem_check(const struct hpl_problem *problem) {
    const struct hpl_budget *budget = &problem->budget;
    if (!topology_is_sound(problem->topology)) return HPL_BAD_ARGUMENT;
    if (problem->experts < 1 || problem->experts > HPL_EXPERTS_MAX) return HPL_BAD_ARGUMENT;
    if (problem->loads->experts != problem->experts ||
        problem->loads->devices != problem->topology->devices) {
        return HPL_BAD_ARGUMENT;
    }
    if (budget->slots < 0 || budget->slots > HPL_EXPERTS_MAX || budget->entries < 0 ||
        budget->chunk_bytes < 0 || budget->window_bytes < 0 || budget->replica_rows < 0 ||
        budget->import_rows < 0 || budget->gather_hidden < 0 || budget->reduce_hidden < 0 ||
        budget->gather_rows < 0 || budget->reduce_rows < 0 || budget->slack < 0 ||
        budget->slack > HPL_SLACK_MAX) {
        return HPL_BAD_ARGUMENT;
    }
    if (!prices_are_sound(&problem->costs)) return HPL_BAD_ARGUMENT;
    for (int32_t e = 0; e < problem->experts; e++) {
        if (problem->owner[e] < 0 || problem->owner[e] >= problem->topology->devices) {
            return HPL_BAD_ARGUMENT;
        }
    }
    return HPL_OK;
}
