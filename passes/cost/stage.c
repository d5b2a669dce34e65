// Counts from loads, plans by the episode that programs run.
#include "passes/cost/stage.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/plan/plan.h"

static struct hpl_plan take_plan(struct hec_arena *arena, int32_t experts, int32_t holders) {
    return (struct hpl_plan){
        .experts = experts,
        .capacity = holders,
        .first = hec_arena_alloc(arena, (size_t)experts + 1, sizeof(int32_t)),
        .holder = hec_arena_alloc(arena, (size_t)holders, sizeof(int32_t)),
    };
}

static void set_topology(struct hec_stage *s) {
    const struct hec_machine *m = s->scene->machine;
    const size_t devices = (size_t)(m->nodes * m->devices), nodes = (size_t)m->nodes;
    int32_t *first = hec_arena_alloc(&s->arena, nodes + 1, sizeof *first);
    int32_t *node = hec_arena_alloc(&s->arena, devices, sizeof *node);
    int32_t *speed = hec_arena_alloc(&s->arena, devices, sizeof *speed);
    for (size_t n = 0; n <= nodes; n++) first[n] = (int32_t)(n * (size_t)m->devices);
    for (size_t d = 0; d < devices; d++) {
        node[d] = (int32_t)(d / (size_t)m->devices);
        speed[d] = 1;
    }
    s->topology = (struct hpl_topology){(int32_t)devices, (int32_t)nodes, first, node, speed};
}

// Recorded rows stand for the program's. Chunks cost so many rows, so plans have to see as many as there will be.
static void scale(const struct hec_stage *s, uint32_t *rows) {
    const size_t cells = (size_t)s->plan.experts * (size_t)s->topology.devices;
    const uint64_t wanted = (uint64_t)s->scene->cost->rows * (uint64_t)s->topology.devices;
    uint64_t sum = 0;
    for (size_t k = 0; k < cells; k++) sum += rows[k];
    if (sum == 0 || sum == wanted) return;
    for (size_t k = 0; k < cells; k++)
        rows[k] = (uint32_t)(((unsigned __int128)rows[k] * wanted + sum / 2) / sum);
}

// Iterations and their microbatches, one after the other: time `at` of the file.
static void step_of(struct hec_stage *s, int64_t layer, int64_t at, uint32_t *rows) {
    const struct loads *l = s->scene->loads;
    loads_step(l, (uint32_t)(at / l->microbatches), (uint32_t)(s->scene->layer + layer),
               (uint32_t)(at % l->microbatches), rows);
    scale(s, rows);
}

// The mean of the iterations that a plan made now serves.
static const uint32_t *counts_to_come(struct hec_stage *s, int32_t layer) {
    const size_t cells = (size_t)s->plan.experts * (size_t)s->topology.devices;
    const struct loads *l = s->scene->loads;
    const int64_t left = (int64_t)l->iterations * l->microbatches - s->now;
    const int64_t of_step = s->movement->lifetime == HPL_LIFETIME_STEP ? s->left : 1;
    const int64_t serves = of_step < left ? of_step : left;
    memset(s->sum, 0, cells * sizeof *s->sum);
    for (int64_t i = 0; i < serves; i++) {
        step_of(s, layer, s->now + i, s->step);
        for (size_t k = 0; k < cells; k++) s->sum[k] += s->step[k];
    }
    for (size_t k = 0; k < cells; k++)
        s->step[k] = (uint32_t)((s->sum[k] + (uint64_t)serves / 2) / (uint64_t)serves);
    return s->step;
}

static const uint32_t *counts(void *context, int32_t layer, int32_t back) {
    struct hec_stage *s = context;
    if (back == 0) return counts_to_come(s, layer);
    if (back > s->now) return NULL;
    step_of(s, layer, s->now - back, s->step);
    return s->step;
}

static void begin_episode(struct hec_stage *s, int32_t holders) {
    const struct hec_set_cost *cost = s->scene->cost;
    const struct hpl_sizes sizes = {cost->chunk_bytes, cost->grad_way_bytes, cost->row_bytes};
    s->episode = (struct hpl_episode){
        .topology = &s->topology,
        .layers = (int32_t)s->scene->layers,
        .experts = cost->experts,
        .counts = counts,
        .context = s,
        .owner = s->scene->owner,
    };
    if (!hpl_episode_move(&s->episode, s->movement, &sizes)) abort(); // The policy was found.
    const size_t bytes = hpl_episode_bytes(&s->episode, holders);
    struct hpl_work work = {.at = hec_arena_alloc(&s->arena, bytes, 1)};
    work.end = work.at + bytes;
    hpl_episode_begin(&s->episode, work, holders); // As many bytes as it wants.
}

void hec_stage_begin(struct hec_stage *s, const struct hec_scene *scene,
                     const struct hpl_movement *movement) {
    *s = (struct hec_stage){.scene = scene, .movement = movement};
    set_topology(s);
    const int32_t experts = s->scene->cost->experts, devices = s->topology.devices;
    const int32_t holders = experts * devices;
    const size_t cells = (size_t)experts * (size_t)devices;
    s->plan = take_plan(&s->arena, experts, holders);
    s->before = take_plan(&s->arena, experts, holders);
    s->quota = hec_arena_alloc(&s->arena, (size_t)holders, sizeof *s->quota);
    s->exact = hec_arena_alloc(&s->arena, cells, sizeof *s->exact);
    s->step = hec_arena_alloc(&s->arena, cells, sizeof *s->step);
    s->sum = hec_arena_alloc(&s->arena, cells, sizeof *s->sum);
    s->owner = hec_arena_alloc(&s->arena, (size_t)experts, sizeof *s->owner);
    s->chunks = hec_arena_alloc(&s->arena, (size_t)devices, sizeof *s->chunks);
    begin_episode(s, holders);
}

// ---- plan

static void take_owners(struct hec_stage *s, int64_t layer) {
    const int32_t experts = s->plan.experts;
    memcpy(s->owner, s->scene->owner + layer * experts, (size_t)experts * sizeof *s->owner);
}

static enum hpl_status place(struct hec_stage *s, int32_t layer, const struct hpl_plan *kept) {
    take_owners(s, layer);
    if (kept) return hpl_plan_copy(&s->plan, kept);
    if (s->episode.policy->when == HPL_WHEN_PERIODIC)
        return hpl_plan_copy(&s->plan, &s->placed[layer]);
    return hpl_episode_plan(&s->episode, layer, s->exact, &s->plan);
}

bool hec_stage_plan(struct hec_stage *s, int64_t at_layer, int64_t at, int64_t left,
                    const struct hpl_plan *kept) {
    const int32_t layer = (int32_t)at_layer;
    struct hpl_calibration result = {0};
    s->now = at;
    s->left = left;
    step_of(s, layer, at, s->exact);
    enum hpl_status status = place(s, layer, kept);
    if (status == HPL_OK) status = hpl_plan_copy(&s->before, &s->plan);
    if (status == HPL_OK)
        status = hpl_episode_calibrate(&s->episode, layer, left, s->exact, &s->plan, &result);
    s->calibrated = result.taken;
    return status == HPL_OK && hpl_episode_divide(&s->episode, layer, s->exact, &s->plan) == HPL_OK;
}

bool hec_stage_recall(struct hec_stage *s, int64_t layer, const struct hpl_plan *before,
                      const struct hpl_plan *plan, bool calibrated) {
    take_owners(s, layer);
    s->calibrated = calibrated;
    return hpl_plan_copy(&s->before, before) == HPL_OK && hpl_plan_copy(&s->plan, plan) == HPL_OK;
}

void hec_stage_free(struct hec_stage *s) {
    hec_arena_free(&s->arena);
}
