// Unit test of runtime/net with the back end `self`.
#include "runtime/net/transport.h"

#include "tests/runtime/support/case.h"

static void exchange_copies_its_own_part(void **state) {
    (void)state;
    struct hrt_comm comm;
    const char send[] = "..abc";
    char recv[] = "-------";
    const size_t bytes = 3, send_offset = 2, recv_offset = 1;
    struct hrt_step step[2];
    struct hrt_steps steps = {.step = step, .room = 2};
    hrt_net_comm_open_self(&comm);
    hrt_net_exchange_on(&comm, HRT_LANE_ROWS, &steps, recv, send,
                        &(struct hrt_exchange){&bytes, &send_offset, &bytes, &recv_offset},
                        "a test");
    assert_string_equal(recv, "-abc---");
    hrt_net_comm_close(&comm);
}

static void one_rank_is_the_sum_of_all_ranks(void **state) {
    (void)state;
    struct hrt_comm comm;
    double data[2] = {1.5, -2};
    hrt_net_comm_open_self(&comm);
    assert_int_equal(comm.size, 1);
    assert_int_equal(comm.nodes, 1);
    hrt_net_comm_all_reduce(&comm, data, 2, HRT_DOUBLE);
    hrt_net_comm_barrier(&comm);
    assert_true(data[0] == 1.5 && data[1] == -2);
    hrt_net_comm_close(&comm);
}

// Doubles a number, by adding it to itself, until it is 1024.
struct doubling {
    struct hrt_steps steps;
    struct hrt_step step;
    double number;
};

static bool double_it(struct hrt_steps *steps) {
    struct doubling *doubling = (struct doubling *)steps;
    hrt_net_steps_clear(steps);
    if (doubling->number == 1024) return false;
    hrt_net_steps_append(steps, &(struct hrt_step){.kind = HRT_ADD,
                                                   .type = HRT_DOUBLE,
                                                   .after = {-1, -1},
                                                   .to = &doubling->number,
                                                   .from = &doubling->number,
                                                   .bytes = sizeof doubling->number});
    return true;
}

static void a_list_is_done_when_it_was_submitted(void **state) {
    (void)state;
    struct hrt_comm comm;
    struct doubling doubling = {.steps = {.room = 1, .next = double_it}, .number = 1};
    doubling.steps.step = &doubling.step;
    hrt_net_comm_open_self(&comm);
    const struct hrt_mark mark = hrt_net_lane_submit(&comm, HRT_LANE_DENSE, &doubling.steps);
    assert_true(hrt_net_lane_reached(&comm, mark));
    hrt_net_lane_join(&comm, hrt_arrival(mark), "a test");
    assert_true(doubling.number == 1024);
    hrt_net_comm_close(&comm);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exchange_copies_its_own_part),
        cmocka_unit_test(one_rank_is_the_sum_of_all_ranks),
        cmocka_unit_test(a_list_is_done_when_it_was_submitted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
