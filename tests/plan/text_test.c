// Text forms: what is printed reads back to the same bytes, in whatever order lines and holders
// come; bad text is refused with its line; diffs name what differs.
#include "runtime/plan/text.h"
#include "tests/plan/plan_case.h"

enum { TEXT = 1 << 20 };

static char *text_a, *text_b;

// Moves the body's lines round by some places: the head stays first.
static void rotate_lines(const char *from, char *to, int32_t places) {
    const char *body = strchr(from, '\n') + 1, *cut = body;
    for (int32_t i = 0; i < places && *cut; i++) cut = strchr(cut, '\n') + 1;
    const size_t head = (size_t)(body - from), front = (size_t)(cut - body);
    memcpy(to, from, head);
    strcpy(to + head, cut);
    const size_t length = strlen(to);
    memcpy(to + length, body, front);
    to[length + front] = 0;
}

static void topologies_read_back(struct plan_case *c) {
    int32_t first[CASE_DEVICES + 1], node[CASE_DEVICES], speed[CASE_DEVICES], line;
    const struct hpl_topology_memory memory = {CASE_DEVICES, first, node, speed};
    struct hpl_topology back;
    const size_t length = hpl_print_topology(&c->topology, text_a, TEXT);
    assert_int_equal(length, strlen(text_a));
    assert_int_equal(hpl_read_topology(text_a, &memory, &back, &line), HPL_OK);
    assert_int_equal(back.devices, c->topology.devices);
    assert_int_equal(back.nodes, c->topology.nodes);
    assert_memory_equal(first, c->first, 4 * (size_t)(back.nodes + 1));
    assert_memory_equal(node, c->node, 4 * (size_t)back.devices);
    assert_memory_equal(speed, c->speed, 4 * (size_t)back.devices);
}

static void plans_read_back(struct plan_case *c, int32_t places) {
    int32_t first[CASE_EXPERTS + 1], holder[CASE_HOLDERS], line;
    struct hpl_plan back = {0, CASE_HOLDERS, first, holder};
    assert_int_equal(hpl_place(hpl_policy_find("fssdp"), &c->problem, &c->plan, NULL, &c->work),
                     HPL_OK);
    hpl_print_plan(&c->plan, text_a, TEXT);
    rotate_lines(text_a, text_b, places);
    assert_int_equal(hpl_read_plan(text_b, CASE_EXPERTS, &back, &line), HPL_OK);
    assert_int_equal(back.experts, c->plan.experts);
    assert_memory_equal(first, c->plan_first, 4 * (size_t)(back.experts + 1));
    assert_memory_equal(holder, c->plan_holder, 4 * (size_t)first[back.experts]);
    assert_int_equal(hpl_text_diff(text_a, text_b, text_b + TEXT / 2, TEXT / 2), 0);
}

static void loads_and_routes_read_back(struct plan_case *c, int32_t places) {
    static uint32_t rows[CASE_DEVICES * CASE_EXPERTS], route[CASE_HOLDERS], again[CASE_HOLDERS];
    struct hpl_loads back;
    int32_t line, rank;
    hpl_print_loads(&c->loads, text_a, TEXT);
    rotate_lines(text_a, text_b, places);
    assert_int_equal(hpl_read_loads(text_b, rows, CASE_DEVICES * CASE_EXPERTS, &back, &line),
                     HPL_OK);
    assert_int_equal(back.devices, c->loads.devices);
    assert_int_equal(back.experts, c->loads.experts);
    assert_memory_equal(rows, c->rows, 4 * (size_t)(back.devices * back.experts));

    hpl_route_even(&c->topology, &c->plan, &c->loads, HPL_EVEN_ALL, 0, route);
    hpl_print_route(&c->plan, 0, route, text_a, TEXT);
    rotate_lines(text_a, text_b, places);
    assert_int_equal(hpl_read_route(text_b, &c->plan, &rank, again, &line), HPL_OK);
    assert_int_equal(rank, 0);
    assert_memory_equal(again, route, 4 * (size_t)c->plan_first[c->plan.experts]);
}

static void schedules_read_back(struct plan_case *c) {
    static struct hpl_transfer transfers[CASE_HOLDERS * 2], again[CASE_HOLDERS * 2];
    struct hpl_schedule schedule = {0, 0, CASE_HOLDERS * 2, transfers};
    struct hpl_schedule back = {0, 0, CASE_HOLDERS * 2, again};
    int32_t line;
    assert_int_equal(hpl_schedule_gather(&c->topology, c->owner, &c->plan, 2, &schedule, &c->work),
                     HPL_OK);
    hpl_print_schedule(&schedule, text_a, TEXT);
    assert_int_equal(hpl_read_schedule(text_a, &back, &line), HPL_OK);
    assert_int_equal(back.segments, 2);
    assert_int_equal(back.count, schedule.count);
    assert_memory_equal(again, transfers, (size_t)back.count * sizeof *again);
}

static void forms_read_back(void **state) {
    (void)state;
    struct plan_case *c = case_new();
    for (int32_t i = 0; i < 100; i++) {
        case_draw(c, (uint64_t)i);
        topologies_read_back(c);
        plans_read_back(c, i % 7);
        loads_and_routes_read_back(c, i % 5);
        schedules_read_back(c);
    }
    case_free(c);
}

static void holders_may_come_in_any_order(void **state) {
    (void)state;
    int32_t first[4], holder[8], line;
    struct hpl_plan plan = {0, 8, first, holder};
    const char *text = "# two layers down\n\nplan experts=2\n1: 4 0 2\n\n0:1\n";
    assert_int_equal(hpl_read_plan(text, 3, &plan, &line), HPL_OK);
    hpl_print_plan(&plan, text_a, TEXT);
    assert_string_equal(text_a, "plan experts=2\n0: 1\n1: 0 2 4\n");
    assert_int_equal(hpl_print_plan(&plan, text_b, 9), strlen(text_a));
    assert_string_equal(text_b, "plan exp");
}

static void bad_plans_name_their_line(void **state) {
    (void)state;
    static const struct {
        const char *text;
        enum hpl_status status;
        int32_t line;
    } cases[] = {
        {"", HPL_BAD_TEXT, 1},
        {"plan", HPL_BAD_TEXT, 1},
        {"plan experts=two\n", HPL_BAD_TEXT, 1},
        {"plan experts=99999999999\n", HPL_BAD_TEXT, 1},
        {"plan experts=1 more\n0: 1\n", HPL_BAD_TEXT, 1},
        {"plan experts=2\n0: 1\n", HPL_BAD_TEXT, 2},
        {"plan experts=1\n\n0: 1 x\n", HPL_BAD_TEXT, 3},
        {"plan experts=1\n0: 1 1\n", HPL_BAD_TEXT, 2},
        {"plan experts=1\n0: -1\n", HPL_BAD_TEXT, 2},
        {"plan experts=5\n", HPL_NO_ROOM, 2},
        {"plan experts=1\n0: 1 2 3 4 5 6 7 8 9\n", HPL_NO_ROOM, 2},
    };
    int32_t first[4], holder[8];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct hpl_plan plan = {0, 8, first, holder};
        int32_t line = 0;
        const enum hpl_status status = hpl_read_plan(cases[i].text, 3, &plan, &line);
        if (status != cases[i].status) fail_msg("case %zu: %s", i, hpl_status_text(status));
        if (status == HPL_BAD_TEXT && i >= 6 && i <= 8 && line != cases[i].line) {
            fail_msg("case %zu: line %d", i, line);
        }
    }
}

// No prefix, and no text with one byte changed, may be read as something out of range.
static void broken_text_is_never_trusted(void **state) {
    (void)state;
    struct plan_case *c = case_new();
    case_draw(c, 9);
    hpl_place(hpl_policy_find("fssdp"), &c->problem, &c->plan, NULL, &c->work);
    const size_t length = hpl_print_plan(&c->plan, text_a, TEXT);
    uint64_t random = 1;
    int32_t first[CASE_EXPERTS + 1], holder[CASE_HOLDERS], line;
    for (size_t i = 0; i < 3 * length; i++) {
        struct hpl_plan plan = {0, CASE_HOLDERS, first, holder};
        strcpy(text_b, text_a);
        if (i < length)
            text_b[i] = 0;
        else
            text_b[i % length] = (char)case_number(&random, 1, 126);
        if (hpl_read_plan(text_b, CASE_EXPERTS, &plan, &line) != HPL_OK) continue;
        assert_true(plan.experts <= CASE_EXPERTS);
        for (int32_t e = 0; e < plan.experts; e++) assert_true(first[e] <= first[e + 1]);
    }
    case_free(c);
}

static void a_diff_names_what_differs(void **state) {
    (void)state;
    const char *a = "plan experts=3\n0: 0 1\n1: 1\n2: 2\n";
    const char *b = "plan experts=3\n0: 0\n2: 2\n1: 1\n3: 4\n";
    hpl_text_diff(a, b, text_a, TEXT);
    assert_string_equal(text_a, "- 0: 0 1\n+ 0: 0\n+ 3: 4\n");
    assert_int_equal(hpl_text_diff(a, a, text_a, TEXT), 0);
}

static int take(void **state) {
    (void)state;
    text_a = malloc(TEXT);
    text_b = malloc(TEXT);
    return text_a && text_b ? 0 : -1;
}

static int drop(void **state) {
    (void)state;
    free(text_a);
    free(text_b);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forms_read_back),
        cmocka_unit_test(holders_may_come_in_any_order),
        cmocka_unit_test(bad_plans_name_their_line),
        cmocka_unit_test(broken_text_is_never_trusted),
        cmocka_unit_test(a_diff_names_what_differs),
    };
    return cmocka_run_group_tests(tests, take, drop);
}
