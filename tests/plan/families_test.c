// Plans of ten families of loads at skews from 0 to 2: their levels, and the steps that they may take. Steps are the
// same on any machine; bench/plan/families.c has the times.
#include "runtime/plan/loads/families.h"
#include "runtime/plan/share.h"
#include "tests/plan/plan_case.h"

enum { SLACK = 10, SLOTS = 2, ENTRIES = 4 };

struct cluster {
    struct loads_shape shape;
    int32_t *first, *node, *speed, *owner;
    struct hpl_topology topology;
    struct hpl_loads loads;
    struct hpl_plan plan, again;
    uint32_t *rows, *next;
    size_t bytes;
    unsigned char *memory;
};

static void *take(size_t count, size_t size) {
    void *taken = calloc(count, size);
    assert_non_null(taken);
    return taken;
}

static struct hpl_plan take_plan(int32_t experts, int32_t holders) {
    return (struct hpl_plan){experts, holders, take((size_t)experts + 1, sizeof(int32_t)),
                             take((size_t)holders, sizeof(int32_t))};
}

static struct cluster cluster_of(int32_t experts, int32_t nodes, int32_t size) {
    const int32_t devices = nodes * size, holders = experts + devices * SLOTS;
    struct cluster c = {.shape = {.experts = experts, .nodes = nodes, .size = size, .rows = 4096}};
    c.first = take((size_t)nodes + 1, sizeof *c.first);
    c.node = take((size_t)devices, sizeof *c.node);
    c.speed = take((size_t)devices, sizeof *c.speed);
    c.owner = take((size_t)experts, sizeof *c.owner);
    c.rows = take((size_t)devices * (size_t)experts, sizeof *c.rows);
    c.next = take((size_t)devices * (size_t)experts, sizeof *c.next);
    for (int32_t n = 0; n <= nodes; n++) c.first[n] = n * size;
    for (int32_t d = 0; d < devices; d++) c.node[d] = d / size, c.speed[d] = 1;
    for (int32_t e = 0; e < experts; e++) c.owner[e] = (int32_t)((int64_t)e * devices / experts);
    c.topology = (struct hpl_topology){devices, nodes, c.first, c.node, c.speed};
    c.loads = (struct hpl_loads){devices, experts, c.rows};
    c.plan = take_plan(experts, holders);
    c.again = take_plan(experts, holders);
    c.bytes = hpl_work_bytes(experts, devices, nodes, holders);
    c.memory = take(c.bytes, 1);
    return c;
}

static void drop(struct cluster *c) {
    void *all[] = {c->first,       c->node,         c->speed,      c->owner,
                   c->rows,        c->next,         c->plan.first, c->plan.holder,
                   c->again.first, c->again.holder, c->memory};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
}

// Draws and plans, twice; the plan's largest load over the mean. `steps` gets those of the searches.
static double plan(struct cluster *c, int32_t family, double skew, int64_t *steps) {
    const struct hpl_problem problem = {
        .topology = &c->topology,
        .experts = c->shape.experts,
        .owner = c->owner,
        .loads = &c->loads,
        .budget = {.slots = SLOTS, .entries = ENTRIES, .slack = SLACK}};
    const struct hpl_policy *policy = hpl_policy_find("fssdp");
    struct hpl_work work = {.at = c->memory, .end = c->memory + c->bytes, .steps = steps};
    struct hpl_level level;
    c->shape.skew = skew;
    c->shape.seed = 3;
    *steps = 0;
    assert_true(loads_family_draw(family, &c->shape, c->rows, c->next));
    assert_int_equal(hpl_place(policy, &problem, &c->plan, NULL, &work), HPL_OK);
    work.steps = NULL;
    memset(c->memory, 0xa5, c->bytes); // A plan depends on nothing that the workspace held.
    assert_int_equal(hpl_place(policy, &problem, &c->again, NULL, &work), HPL_OK);
    const int32_t holders = c->plan.first[c->plan.experts];
    assert_memory_equal(c->plan.first, c->again.first, (size_t)c->plan.experts * 4 + 4);
    assert_memory_equal(c->plan.holder, c->again.holder, (size_t)holders * 4);
    assert_int_equal(hpl_share_level(&c->topology, &c->plan, &c->loads, SLACK, &level, NULL, &work),
                     HPL_OK);
    double rows = 0;
    for (int64_t i = 0; i < (int64_t)c->topology.devices * c->shape.experts; i++)
        rows += c->rows[i];
    return (double)level.num / (double)level.den * c->topology.devices / rows;
}

static void plan_all(int32_t experts, int32_t nodes, int32_t size, const double *skews,
                     int32_t count, int64_t most_steps, double most_level) {
    struct cluster c = cluster_of(experts, nodes, size);
    for (int32_t family = 0; family < LOADS_FAMILIES; family++) {
        for (int32_t i = 0; i < count; i++) {
            int64_t steps;
            const double level = plan(&c, family, skews[i], &steps);
            if (level > most_level || steps > most_steps)
                fail_msg("%s at skew %g: level %.4f, %lld steps", loads_family_name(family),
                         skews[i], level, (long long)steps);
        }
    }
    drop(&c);
}

static void small_clusters_reach_the_level(void **state) {
    (void)state;
    plan_all(64, 8, 8, (const double[]){0, 0.2, 0.5, 1, 1.5, 2}, 6, 30000, 1.0101);
}

static void a_thousand_devices_reach_the_level(void **state) {
    (void)state;
    plan_all(256, 128, 8, (const double[]){0.2, 0.5}, 2, 700000, 1.0101);
}

// Here devices have few slots for the experts of their node.
static void large_nodes_come_near_it(void **state) {
    (void)state;
    plan_all(256, 4, 72, (const double[]){0, 0.2}, 2, 700000, 1.06);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_clusters_reach_the_level),
        cmocka_unit_test(a_thousand_devices_reach_the_level),
        cmocka_unit_test(large_nodes_come_near_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
