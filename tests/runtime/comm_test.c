// Unit test of runtime/comm with the back end `self`.
#include "runtime/comm/comm.h"

#include "runtime/comm/job.h"
#include "tests/runtime/support/case.h"

static void a_message_arrives_whichever_side_comes_first(void **state) {
    (void)state;
    struct hrt_comm comm;
    struct hrt_request send, recv;
    hrt_comm_open_self(&comm);
    for (int send_first = 0; send_first < 2; send_first++) {
        const int32_t data[2] = {3, 4};
        int32_t got[2] = {0};
        if (send_first) {
            hrt_comm_isend(&comm, &send, 0, 1, data, sizeof data);
            assert_false(hrt_comm_test(&comm, &send));
            hrt_comm_irecv(&comm, &recv, 0, 1, got, sizeof got);
        } else {
            hrt_comm_irecv(&comm, &recv, 0, 1, got, sizeof got);
            assert_false(hrt_comm_test(&comm, &recv));
            hrt_comm_isend(&comm, &send, 0, 1, data, sizeof data);
        }
        assert_true(hrt_comm_test(&comm, &send));
        assert_true(hrt_comm_test(&comm, &recv));
        assert_memory_equal(got, data, sizeof data);
    }
    hrt_comm_close(&comm);
}

static void messages_keep_their_order_within_a_tag(void **state) {
    (void)state;
    struct hrt_comm comm;
    struct hrt_request send[3], recv[3];
    const int data[3] = {10, 20, 30};
    int got[3] = {0};
    hrt_comm_open_self(&comm);
    hrt_comm_isend(&comm, &send[0], 0, 7, &data[0], sizeof *data);
    hrt_comm_isend(&comm, &send[1], 0, 8, &data[1], sizeof *data);
    hrt_comm_isend(&comm, &send[2], 0, 7, &data[2], sizeof *data);
    hrt_comm_irecv(&comm, &recv[0], 0, 8, &got[0], sizeof *got);
    hrt_comm_irecv(&comm, &recv[1], 0, 7, &got[1], sizeof *got);
    hrt_comm_irecv(&comm, &recv[2], 0, 7, &got[2], sizeof *got);
    assert_int_equal(got[0], 20);
    assert_int_equal(got[1], 10);
    assert_int_equal(got[2], 30);
    hrt_comm_close(&comm);
}

static void all_to_all_copies_its_own_part(void **state) {
    (void)state;
    struct hrt_comm comm;
    const char send[] = "..abc";
    char recv[] = "-------";
    const size_t bytes = 3, send_offset = 2, recv_offset = 1;
    hrt_comm_open_self(&comm);
    hrt_comm_all_to_all(&comm, recv, send,
                        &(struct hrt_exchange){&bytes, &send_offset, &bytes, &recv_offset});
    assert_string_equal(recv, "-abc---");
    hrt_comm_close(&comm);
}

static void one_rank_is_the_sum_of_all_ranks(void **state) {
    (void)state;
    struct hrt_comm comm;
    double data[2] = {1.5, -2};
    hrt_comm_open_self(&comm);
    assert_int_equal(comm.size, 1);
    assert_int_equal(comm.nodes, 1);
    hrt_comm_all_reduce(&comm, data, 2, HRT_DOUBLE);
    hrt_comm_barrier(&comm);
    assert_true(data[0] == 1.5 && data[1] == -2);
    hrt_comm_close(&comm);
}

// Sends itself a number, then twice that number, and so on.
struct doubling {
    struct hrt_job job;
    struct hrt_request send, recv;
    int out, in, rounds;
};

static bool double_it(struct hrt_job *job, struct hrt_comm *comm) {
    struct doubling *doubling = (struct doubling *)job;
    if (doubling->rounds > 0 && hrt_comm_test(comm, &doubling->recv)) doubling->out = doubling->in;
    if (doubling->rounds++ == 10) return true;
    doubling->out *= 2;
    hrt_comm_irecv(comm, &doubling->recv, 0, 3, &doubling->in, sizeof doubling->in);
    hrt_comm_isend(comm, &doubling->send, 0, 3, &doubling->out, sizeof doubling->out);
    return false;
}

static void a_job_has_finished_when_it_was_started(void **state) {
    (void)state;
    struct hrt_comm comm;
    struct doubling doubling = {.job.advance = double_it, .out = 1};
    hrt_comm_open_self(&comm);
    hrt_comm_start(&comm, &doubling.job);
    assert_true(hrt_comm_finished(&comm, &doubling.job));
    hrt_comm_wait(&comm, &doubling.job, "a test");
    assert_int_equal(doubling.in, 1024);
    hrt_comm_close(&comm);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_message_arrives_whichever_side_comes_first),
        cmocka_unit_test(messages_keep_their_order_within_a_tag),
        cmocka_unit_test(all_to_all_copies_its_own_part),
        cmocka_unit_test(one_rank_is_the_sum_of_all_ranks),
        cmocka_unit_test(a_job_has_finished_when_it_was_started),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
