// A rank's part of all quotas, found by sums, is what the quotas of all ranks, one after the other, say.
#include "runtime/plan/share.h"
#include "tests/plan/plan_case.h"

enum { CASES = 300, SLACK = 10 };

struct arrays {
    uint32_t to[CASE_HOLDERS], before[CASE_HOLDERS], sum[CASE_HOLDERS];
    uint32_t here[CASE_DEVICES * CASE_EXPERTS];
};

static struct hpl_part part_of(struct arrays *a) {
    return (struct hpl_part){a->to, a->before, a->sum, a->here, CASE_EXPERTS};
}

static void check(const struct plan_case *c, int32_t rank, const struct arrays *part,
                  const struct arrays *wanted) {
    int32_t held = 0;
    for (int32_t k = 0; k < c->plan.first[c->plan.experts]; k++) {
        assert_int_equal(part->to[k], wanted->to[k]);
        assert_int_equal(part->sum[k], wanted->sum[k]);
        if (part->to[k] > 0) assert_int_equal(part->before[k], wanted->before[k]);
        held += c->plan.holder[k] == rank;
    }
    for (int32_t r = 0; r < c->topology.devices; r++) {
        for (int32_t n = 0; n < held; n++)
            assert_int_equal(part->here[r * CASE_EXPERTS + n], wanted->here[r * CASE_EXPERTS + n]);
    }
}

static void compare(struct plan_case *c, struct arrays *part, struct arrays *wanted) {
    static uint32_t rows[CASE_DEVICES][CASE_HOLDERS];
    for (int32_t r = 0; r < c->topology.devices; r++)
        assert_int_equal(
            hpl_route(&c->topology, &c->plan, &c->loads, c->share, r, rows[r], &c->work), HPL_OK);
    for (int32_t rank = 0; rank < c->topology.devices; rank++) {
        const struct hpl_part found = part_of(part), sums = part_of(wanted);
        memset(part, 0xff, sizeof *part);
        assert_int_equal(
            hpl_route_part(&c->topology, &c->plan, &c->loads, c->share, rank, &found, &c->work),
            HPL_OK);
        hpl_part_begin(&sums, &c->plan);
        for (int32_t r = 0; r < c->topology.devices; r++)
            hpl_part_add(&sums, &c->plan, rank, r, rows[r]);
        check(c, rank, part, wanted);
    }
}

static void parts_are_those_of_all_quotas(void **state) {
    (void)state;
    struct plan_case *c = case_new();
    struct arrays *part = malloc(sizeof *part), *wanted = malloc(sizeof *wanted);
    const char *const policies[] = {"fssdp", "hecate", "eplb", "ep"};
    int32_t compared = 0;
    assert_true(part && wanted);
    for (uint64_t seed = 0; seed < CASES; seed++) {
        struct hpl_level level;
        const struct hpl_policy *policy = hpl_policy_find(policies[seed % 4]);
        case_draw(c, seed);
        if (hpl_place(policy, &c->problem, &c->plan, c->share, &c->work) != HPL_OK) continue;
        for (int32_t i = 0; i < c->topology.devices * c->problem.experts; i++)
            c->rows[i] = c->rows[i] * (uint32_t)(i % 7) / 3; // Not what was planned for.
        assert_int_equal(
            hpl_share(&c->topology, &c->plan, &c->loads, SLACK, c->share, &level, &c->work),
            HPL_OK);
        compare(c, part, wanted);
        compared++;
    }
    assert_true(compared > CASES / 2);
    free(part);
    free(wanted);
    case_free(c);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(parts_are_those_of_all_quotas)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
