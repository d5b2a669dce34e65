// The replicas that policy fssdp imports, and adds behind the gate, when chunks and rows across nodes have prices.
#include "runtime/plan/calibrate.h"
#include "tests/plan/plan_case.h"

enum { NODES = 4, EXPERTS = 8 };

// Four nodes of one device; node n owns experts 2 n and 2 n + 1, of which every device has rows[n] each.
static void set_up(struct plan_case *c, const uint32_t rows[NODES], int32_t entries) {
    case_draw(c, 1);
    for (int32_t n = 0; n <= NODES; n++) c->first[n] = n;
    for (int32_t n = 0; n < NODES; n++) c->node[n] = n, c->speed[n] = 1;
    for (int32_t e = 0; e < EXPERTS; e++) c->owner[e] = e / 2;
    for (int32_t i = 0; i < NODES * EXPERTS; i++) c->rows[i] = rows[i % EXPERTS / 2];
    c->topology.devices = c->topology.nodes = c->loads.devices = NODES;
    c->loads.experts = c->plan.experts = c->problem.experts = EXPERTS;
    // Balance asks for nothing.
    c->problem.budget = (struct hpl_budget){
        .slots = EXPERTS, .entries = entries, .slack = HPL_SLACK_MAX, .replica_rows = INT32_MAX};
}

static int32_t entries_of(const struct plan_case *c, const struct hpl_plan *plan, int32_t node) {
    int32_t count = 0;
    for (int32_t e = 0; e < EXPERTS; e++) count += c->owner[e] != node && case_holds(plan, e, node);
    return count;
}

// Rows that come to the owners in a node from nodes that lack their experts.
static int64_t rows_to(const struct plan_case *c, const struct hpl_plan *plan, int32_t node) {
    int64_t rows = 0;
    for (int32_t e = 0; e < EXPERTS; e++) {
        for (int32_t d = 0; c->owner[e] == node && d < NODES; d++)
            rows += case_holds(plan, e, d) ? 0 : c->rows[d * EXPERTS + e];
    }
    return rows;
}

static void place(struct plan_case *c) {
    assert_int_equal(hpl_place(hpl_policy_find("fssdp"), &c->problem, &c->plan, c->share, &c->work),
                     HPL_OK);
}

static void no_link_is_left_with_most_rows(void **state) {
    (void)state;
    struct plan_case *c = case_new();
    // By rows alone nobody would import from node 0, and all send it what they have for its experts.
    set_up(c, (const uint32_t[NODES]){10, 11, 11, 11}, 3);
    place(c);
    for (int32_t n = 0; n < NODES; n++) {
        assert_int_equal(entries_of(c, &c->plan, n), 3);
        assert_true(rows_to(c, &c->plan, n) <= 33); // As many as leave node 0.
    }
    case_free(c);
}

static void imports_pay_for_what_is_waited_for(void **state) {
    (void)state;
    struct plan_case *c = case_new();
    set_up(c, (const uint32_t[NODES]){90, 70, 50, 30}, 6);
    struct hpl_budget *budget = &c->problem.budget;
    place(c);
    for (int32_t n = 0; n < NODES; n++) assert_int_equal(entries_of(c, &c->plan, n), 6);
    budget->gather_hidden = 1, budget->gather_rows = 60;
    budget->reduce_hidden = 3, budget->reduce_rows = 20;
    // The third and fourth import of nodes that lack the 90 and the 70 have 70 rows: enough for the
    // parameters of the third, not for the gradient of the fourth. Others may have as many as they.
    place(c);
    for (int32_t n = 0; n < NODES; n++) assert_int_equal(entries_of(c, &c->plan, n), 3);
    budget->reduce_rows = 8;
    place(c);
    for (int32_t n = 0; n < NODES; n++) assert_int_equal(entries_of(c, &c->plan, n), 4);
    budget->gather_hidden = 0, budget->gather_rows = 100;
    place(c);
    for (int32_t n = 0; n < NODES; n++) assert_int_equal(entries_of(c, &c->plan, n), 0);
    case_free(c);
}

// Entries that are there already count among the hidden ones.
static void entries_that_are_there_count(void **state) {
    (void)state;
    struct plan_case *c = case_new();
    int32_t first[EXPERTS + 1], holder[CASE_HOLDERS];
    struct hpl_plan present = {EXPERTS, CASE_HOLDERS, first, holder};
    set_up(c, (const uint32_t[NODES]){90, 70, 50, 30}, 1);
    place(c);
    memcpy(first, c->plan_first, sizeof first);
    memcpy(holder, c->plan_holder, sizeof *holder * (size_t)first[EXPERTS]);
    c->problem.present = &present;
    c->problem.budget.entries = 8;
    c->problem.budget.gather_hidden = 3, c->problem.budget.gather_rows = 200;
    place(c);
    for (int32_t n = 0; n < NODES; n++) assert_int_equal(entries_of(c, &c->plan, n), 3);
    case_free(c);
}

// Owners alone are in balance; only rows across nodes speak for more.
static void calibration_weighs_rows_across_nodes(void **state) {
    (void)state;
    struct plan_case *c = case_new();
    struct hpl_calibration result;
    int32_t first[EXPERTS + 1], holder[CASE_HOLDERS];
    struct hpl_plan after = {EXPERTS, CASE_HOLDERS, first, holder};
    set_up(c, (const uint32_t[NODES]){90, 70, 50, 30}, 0);
    place(c);
    assert_int_equal(c->plan.first[EXPERTS], EXPERTS);
    struct hpl_problem problem = c->problem;
    problem.present = &c->plan;
    problem.costs = (struct hpl_costs){.row_compute = 1, .chunk_send = 100, .chunk_near = 1};
    struct hpl_problem weighed = problem;
    hpl_calibration_terms(&problem);
    const struct hpl_policy *quota = hpl_policy_find("fssdp");
    assert_int_equal(
        hpl_calibrate(&problem, quota, HPL_SPLIT_QUOTA, false, &after, c->share, &result, &c->work),
        HPL_OK);
    assert_false(result.taken);
    assert_int_equal(result.cross_before, 0); // Has no price.

    // 2 experts of 90 rows come to node 0 from each other node, four ways; a chunk costs as much as 25
    // rows do.
    weighed.costs.row_cross = 1;
    weighed.budget.gather_rows = 12;
    struct hpl_problem dear = weighed;
    hpl_calibration_terms(&weighed);
    assert_int_equal(
        hpl_calibrate(&weighed, quota, HPL_SPLIT_QUOTA, false, &after, c->share, &result, &c->work),
        HPL_OK);
    assert_true(result.taken);
    assert_int_equal(result.cross_before, 540);
    assert_int_equal(result.cross_after, 0);
    assert_int_equal(result.wait, 6 * 100 + 6 * 1);
    assert_int_equal(result.price, result.wait);
    for (int32_t n = 0; n < NODES; n++) assert_int_equal(entries_of(c, &after, n), 6);

    // Gradients of all but two are waited for, too: that is more than the rows take.
    dear.costs.grad_send = 400;
    dear.budget.reduce_hidden = 2;
    hpl_calibration_terms(&dear);
    assert_int_equal(
        hpl_calibrate(&dear, quota, HPL_SPLIT_QUOTA, false, &after, c->share, &result, &c->work),
        HPL_OK);
    assert_int_equal(result.price, result.wait + 4 * 400);
    assert_false(result.taken);

    // In two iterations it is less: chunks come once, and gradients leave once.
    const int64_t gain = result.gain, price = result.price;
    dear.serves = 2;
    assert_int_equal(
        hpl_calibrate(&dear, quota, HPL_SPLIT_QUOTA, false, &after, c->share, &result, &c->work),
        HPL_OK);
    assert_int_equal(result.gain, 2 * gain);
    assert_int_equal(result.price, price);
    assert_true(result.taken);
    case_free(c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_link_is_left_with_most_rows),
        cmocka_unit_test(imports_pay_for_what_is_waited_for),
        cmocka_unit_test(entries_that_are_there_count),
        cmocka_unit_test(calibration_weighs_rows_across_nodes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
