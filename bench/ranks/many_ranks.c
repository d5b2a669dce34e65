// many-ranks: counts the messages and bytes that a rank of a large cluster sends and keeps for one MoE layer and
// iteration, and measures its own part of an exchange of counts.
//
// usage: many-ranks EXPERTS NODES DEVICES_PER_NODE SLOTS ENTRIES
// Prints an object of JSON. Messages are those of the lists that programs run; transfers are those of a plan for drawn
// loads (Zipf 1.2, 4,096 rows a device). Times are the thread's own processor time in microseconds, the least of ten.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/net/all_gather.h"
#include "runtime/plan/episode.h"
#include "runtime/plan/loads/families.h"
#include "runtime/plan/schedule.h"

enum { SLACK = 10, SEGMENTS = 4, WINDOW = 5, WORD = 2, TRIES = 10 };

static double now_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}

static void *taken(size_t count, size_t size) {
    void *memory = calloc(count, size);
    if (memory) return memory;
    fprintf(stderr, "many-ranks: out of memory\n");
    exit(1);
}

struct cluster {
    int32_t experts, nodes, size, devices, slots, entries;
    struct hpl_topology topology;
    struct hpl_grid grid;
};

static struct cluster cluster_of(char **argv) {
    struct cluster c = {.experts = atoi(argv[1]),
                        .nodes = atoi(argv[2]),
                        .size = atoi(argv[3]),
                        .slots = atoi(argv[4]),
                        .entries = atoi(argv[5])};
    c.devices = c.nodes * c.size;
    int32_t *first = taken((size_t)c.nodes + 1, sizeof *first);
    int32_t *node = taken((size_t)c.devices, sizeof *node);
    int32_t *speed = taken((size_t)c.devices, sizeof *speed);
    for (int32_t n = 0; n <= c.nodes; n++) first[n] = n * c.size;
    for (int32_t d = 0; d < c.devices; d++) node[d] = d / c.size, speed[d] = 1;
    c.topology = (struct hpl_topology){c.devices, c.nodes, first, node, speed};
    c.grid = hpl_grid_of(c.devices, c.nodes, node);
    return c;
}

// An exchange of blocks of `bytes`, as rank 0 takes part in it.
static void say_exchange(const struct cluster *c, const char *name, size_t bytes) {
    char *blocks = taken((size_t)c->devices, bytes), *copy = taken((size_t)c->devices, bytes);
    struct hrt_steps steps = {.step = taken(2 * (size_t)c->devices, sizeof *steps.step),
                              .room = 2 * c->devices};
    int64_t messages = 0, sent = 0, left = 0;
    double least = 1e300;
    for (int i = 0; i < TRIES; i++) {
        const double begin = now_us();
        hrt_net_steps_all_gather(&steps, &c->grid, 0, blocks, bytes);
        for (int32_t r = 0; r < c->devices; r++)
            memcpy(copy + (size_t)r * bytes, blocks + hrt_net_gathered_at(&c->grid, 0, r) * bytes,
                   bytes);
        const double us = now_us() - begin;
        least = us < least ? us : least;
    }
    for (int32_t i = 0; i < steps.count; i++) {
        const struct hrt_step *step = &steps.step[i];
        if (step->kind != HRT_SEND) continue;
        messages++;
        sent += (int64_t)step->bytes;
        if (c->topology.node[step->peer] != 0) left += (int64_t)step->bytes;
    }
    printf("\"%s\": {\"messages\": %lld, \"rounds\": %d, \"bytes\": %lld, \"across\": %lld, "
           "\"us\": %.1f},\n",
           name, (long long)messages, hpl_grid_rounds(&c->grid) + (c->grid.inside > 1),
           (long long)sent, (long long)left, least);
    free(blocks);
    free(copy);
    free(steps.step);
}

static void say_connections(const struct cluster *c) {
    int32_t most = 0;
    for (int32_t a = 0; a < c->devices; a++) {
        int32_t near = 0;
        for (int32_t b = 0; b < c->devices; b++) near += a != b && hpl_grid_near(&c->grid, a, b);
        most = near > most ? near : most;
    }
    printf("\"connections\": %d,\n", most);
}

struct placed {
    struct hpl_plan plan;
    struct hpl_schedule schedule;
    int32_t *owner;
};

// Plans for drawn loads, and schedules the gather.
static struct placed place(const struct cluster *c) {
    const struct loads_shape shape = {.nodes = c->nodes,
                                      .size = c->size,
                                      .experts = c->experts,
                                      .rows = 4096,
                                      .skew = 1.2,
                                      .seed = 7};
    const int32_t holders = c->experts + c->devices * c->slots;
    const size_t cells = (size_t)c->devices * (size_t)c->experts;
    uint32_t *before = taken(cells, sizeof *before), *after = taken(cells, sizeof *after);
    struct placed p = {.owner = taken((size_t)c->experts, sizeof *p.owner)};
    p.plan =
        (struct hpl_plan){c->experts, holders, taken((size_t)c->experts + 1, sizeof *p.plan.first),
                          taken((size_t)holders, sizeof *p.plan.holder)};
    p.schedule.capacity = holders * SEGMENTS;
    p.schedule.transfer = taken((size_t)p.schedule.capacity, sizeof *p.schedule.transfer);
    for (int32_t e = 0; e < c->experts; e++)
        p.owner[e] = (int32_t)((int64_t)e * c->devices / c->experts);
    const size_t bytes = hpl_work_bytes(c->experts, c->devices, c->nodes, holders);
    unsigned char *memory = taken(bytes, 1);
    struct hpl_work work = {.at = memory, .end = memory + bytes};
    const struct hpl_loads loads = {c->devices, c->experts, before};
    const struct hpl_problem problem = {
        .topology = &c->topology,
        .experts = c->experts,
        .owner = p.owner,
        .loads = &loads,
        .budget = {.slots = c->slots, .entries = c->entries, .slack = SLACK}};
    if (!loads_family_draw(0, &shape, before, after) ||
        hpl_place(hpl_policy_find("fssdp"), &problem, &p.plan, NULL, &work) != HPL_OK ||
        hpl_schedule_gather(&c->topology, p.owner, &p.plan, SEGMENTS, &p.schedule, &work) !=
            HPL_OK) {
        fprintf(stderr, "many-ranks: no plan\n");
        exit(1);
    }
    free(before);
    free(after);
    free(memory);
    return p;
}

// The segments that ranks send, and the messages of hashes before them: one to each rank that is sent something.
static void say_gather(const struct cluster *c, const struct placed *p) {
    int32_t *sends = taken((size_t)c->devices, sizeof *sends);
    int32_t most = 0;
    for (int32_t i = 0; i < p->schedule.count; i++) {
        const int32_t count = ++sends[p->schedule.transfer[i].from];
        most = count > most ? count : most;
    }
    printf("\"gather\": {\"transfers\": %d, \"mean\": %.1f, \"most\": %d},\n", p->schedule.count,
           (double)p->schedule.count / c->devices, most);
    free(sends);
}

static void say_memory(const struct cluster *c, const struct placed *p) {
    const size_t counts = (size_t)c->devices * (size_t)c->experts * sizeof(uint32_t);
    const size_t plan = ((size_t)p->plan.capacity + (size_t)c->experts + 1) * sizeof(int32_t);
    printf("\"memory\": {\"counts\": %zu, \"window\": %zu, \"plans\": %zu, \"schedule\": %zu},\n",
           counts, WINDOW * counts, 4 * plan,
           (size_t)p->schedule.capacity * sizeof *p->schedule.transfer);
    printf("\"checkpoint\": {\"rank\": %zu, \"all\": %zu}\n", WINDOW * counts / (size_t)c->devices,
           WINDOW * counts);
}

int main(int argc, char **argv) {
    if (argc != 6) {
        fprintf(stderr, "usage: many-ranks EXPERTS NODES DEVICES_PER_NODE SLOTS ENTRIES\n");
        return 2;
    }
    const struct cluster c = cluster_of(argv);
    const struct placed p = place(&c);
    printf("{\"ranks\": %d,\n", c.devices);
    say_exchange(&c, "counts", ((size_t)c.experts + WORD) * sizeof(uint32_t));
    say_exchange(&c, "words", WORD * sizeof(uint32_t));
    say_connections(&c);
    say_gather(&c, &p);
    say_memory(&c, &p);
    printf("}\n");
    return 0;
}
