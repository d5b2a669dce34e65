#include "passes/timeline/first_owners.h"

#include <string.h>

#include "ir/accessors.h"
#include "passes/cost/recorded.h"
#include "runtime/plan/reshard.h"

static size_t owners_of(const struct hec_set_cost *c) {
    return (size_t)c->layers * (size_t)c->experts;
}

static int64_t devices_of(const struct hec_search *s) {
    return s->setup.costs.machine.nodes * s->setup.costs.machine.devices;
}

void hec_even_owners(struct hec_search *s, struct hec_arena *arena) {
    const bool calibrates = s->setup.policy->calibrates;
    s->sharded = s->setup.recorded && calibrates;
    s->even = hec_arena_alloc(arena, (size_t)s->setup.costs.count, sizeof *s->even);
    for (int i = 0; i < s->setup.costs.count; i++) {
        const struct hec_set_cost *c = &s->setup.costs.set[i];
        int32_t *even = hec_arena_alloc(arena, owners_of(c), sizeof *even);
        memcpy(even, s->setup.owner[i], owners_of(c) * sizeof *even);
        if (calibrates && c->experts % devices_of(s) != 0 && c->layers > 1) {
            for (size_t k = 0; k < owners_of(c); k++)
                even[k] = (int32_t)(k % (size_t)devices_of(s));
            s->spread = true;
        }
        s->even[i] = even;
    }
}

static bool reshard(struct hec_search *s, int set, struct hec_arena *arena, int64_t overlap) {
    const struct hec_set_cost *c = &s->setup.costs.set[set];
    const struct hec_machine *m = &s->setup.costs.machine;
    const int64_t devices = devices_of(s);
    int32_t *first = hec_arena_alloc(arena, (size_t)m->nodes + 1, sizeof *first);
    int32_t *node = hec_arena_alloc(arena, (size_t)devices, sizeof *node);
    int32_t *speed = hec_arena_alloc(arena, (size_t)devices, sizeof *speed);
    for (int64_t n = 0; n <= m->nodes; n++) first[n] = (int32_t)(n * m->devices);
    for (int64_t d = 0; d < devices; d++) node[d] = (int32_t)(d / m->devices), speed[d] = 1;
    const struct hpl_topology topology = {(int32_t)devices, (int32_t)m->nodes, first, node, speed};
    int64_t *rows = hec_arena_alloc(arena, owners_of(c), sizeof *rows);
    hec_recorded_totals(&s->setup, set, rows);
    const size_t bytes =
        hpl_reshard_work_bytes((int32_t)c->layers, c->experts, (int32_t)devices, (int32_t)m->nodes);
    struct hpl_work work = {.at = hec_arena_alloc(arena, bytes, 1)};
    work.end = work.at + bytes;
    return hpl_reshard(&topology, (int32_t)c->layers, c->experts, rows, (int32_t)overlap,
                       s->even[set], s->setup.owner[set], &work) == HPL_OK;
}

bool hec_first_owners(MlirOperation module, struct hec_search *s, struct hec_arena *arena,
                      int64_t overlap) {
    for (int i = 0; i < s->setup.costs.count; i++) {
        const struct hec_set_cost *c = &s->setup.costs.set[i];
        memcpy(s->setup.owner[i], s->even[i], owners_of(c) * sizeof **s->even);
        const int64_t most = overlap < c->experts ? overlap : c->experts;
        if (s->sharded && !reshard(s, i, arena, most))
            return hec_ir_error(module, "the planner refuses the loads of '%s'", s->setup.recorded);
        if (s->sharded || s->spread)
            hec_set_put_owner(hec_find_symbol(module, HEC_STR(c->name)),
                              mlirDenseI32ArrayGet(mlirOperationGetContext(module),
                                                   c->layers * c->experts, s->setup.owner[i]));
    }
    return true;
}
