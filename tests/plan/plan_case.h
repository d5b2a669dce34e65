// plan_case.h: random problems for the planner's tests, the same in every run.
#ifndef HECATE_TESTS_PLAN_PLAN_CASE_H
#define HECATE_TESTS_PLAN_PLAN_CASE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/plan/policy.h"

enum {
    CASE_DEVICES = 40,
    CASE_EXPERTS = 48,
    CASE_SLOTS = 8,
    CASE_HOLDERS = CASE_EXPERTS * CASE_DEVICES,
};

// A problem with the memory it points into. Fill it with case_draw.
struct plan_case {
    struct hpl_problem problem;
    struct hpl_topology topology;
    struct hpl_loads loads;
    struct hpl_plan plan;
    struct hpl_work work;
    int32_t first[CASE_DEVICES + 1], node[CASE_DEVICES], speed[CASE_DEVICES];
    int32_t owner[CASE_EXPERTS];
    uint32_t rows[CASE_DEVICES * CASE_EXPERTS];
    int32_t plan_first[CASE_EXPERTS + 1], plan_holder[CASE_HOLDERS];
    int64_t share[CASE_HOLDERS];
    void *memory;
};

static inline uint64_t case_random(uint64_t *state) { // splitmix64
    uint64_t z = *state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

// A number from least to most.
static inline int32_t case_number(uint64_t *state, int32_t least, int32_t most) {
    return least + (int32_t)(case_random(state) % (uint64_t)(most - least + 1));
}

// Nodes of unequal size, 1 to `most` devices in all.
static inline void case_draw_topology(struct plan_case *c, int32_t most, bool equal_speeds,
                                      uint64_t *state) {
    const int32_t devices = case_number(state, 1, most);
    int32_t nodes = 0, d = 0;
    while (d < devices) {
        const int32_t size = case_number(state, 1, devices - d < 8 ? devices - d : 8);
        c->first[nodes] = d;
        for (int32_t i = 0; i < size; i++) c->node[d++] = nodes;
        nodes++;
    }
    c->first[nodes] = devices;
    for (d = 0; d < devices; d++) c->speed[d] = equal_speeds ? 1 : case_number(state, 1, 5);
    c->topology = (struct hpl_topology){devices, nodes, c->first, c->node, c->speed};
}

// A whole problem: owners anywhere, loads with a few hot experts, some sources and experts empty.
static inline void case_draw(struct plan_case *c, uint64_t seed) {
    uint64_t state = seed;
    case_draw_topology(c, CASE_DEVICES, case_number(&state, 0, 2) > 0, &state);
    const int32_t devices = c->topology.devices;
    const int32_t experts = case_number(&state, 1, CASE_EXPERTS);
    for (int32_t e = 0; e < experts; e++) c->owner[e] = case_number(&state, 0, devices - 1);
    for (int32_t e = 0; e < experts; e++) {
        const int32_t kind = case_number(&state, 0, 9);
        const int32_t most = kind == 0 ? 0 : kind < 7 ? 60 : 2000;
        for (int32_t d = 0; d < devices; d++) {
            c->rows[d * experts + e] = (uint32_t)case_number(&state, most / 3, most);
        }
    }
    c->loads = (struct hpl_loads){devices, experts, c->rows};
    c->plan = (struct hpl_plan){experts, CASE_HOLDERS, c->plan_first, c->plan_holder};
    c->problem = (struct hpl_problem){
        .topology = &c->topology,
        .experts = experts,
        .owner = c->owner,
        .loads = &c->loads,
        .budget = {.slots = case_number(&state, 0, CASE_SLOTS),
                   .entries = case_number(&state, 0, 12),
                   .slack = 10 * case_number(&state, 0, 3)},
        .costs = {1, 1, 500},
    };
    const size_t bytes = hpl_work_bytes(experts, devices, c->topology.nodes, CASE_HOLDERS);
    free(c->memory);
    c->memory = malloc(bytes);
    assert_non_null(c->memory);
    c->work = (struct hpl_work){.at = c->memory, .end = (unsigned char *)c->memory + bytes};
    assert_int_equal(hpl_problem_check(&c->problem), HPL_OK);
}

static inline struct plan_case *case_new(void) {
    struct plan_case *c = calloc(1, sizeof *c);
    assert_non_null(c);
    return c;
}

static inline void case_free(struct plan_case *c) {
    free(c->memory);
    free(c);
}

static inline bool case_holds(const struct hpl_plan *plan, int32_t expert, int32_t device) {
    for (int32_t k = plan->first[expert]; k < plan->first[expert + 1]; k++) {
        if (plan->holder[k] == device) return true;
    }
    return false;
}

#endif
