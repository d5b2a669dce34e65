// Test of many ranks over TCP, two on each node: they keep the connections that they have something to say over, and
// sums are those of any other ranks.
#define _GNU_SOURCE // memfd_create
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "runtime/net/all_gather.h"
#include "runtime/net/transport.h"
#include "runtime/plan/grid.h"
#include "tests/runtime/ranks_case.h"

enum { NODE = 2, NEAR = 10, NUMBERS = 10000, FLOATS = 40000 };

static struct hrt_comm comm;

#define CHECK(condition) RANKS_CHECK(&comm, condition)

// Sockets of this process whose other end is a rank.
static int connections(void) {
    int count = 0;
    for (int fd = 3; fd < 1024; fd++) {
        struct sockaddr_storage peer;
        socklen_t bytes = sizeof peer;
        count += getpeername(fd, (struct sockaddr *)&peer, &bytes) == 0 &&
                 (peer.ss_family == AF_INET || peer.ss_family == AF_INET6);
    }
    return count;
}

// Those that came to nothing are closed within a heartbeat.
static bool keeps(int wanted) {
    for (int tries = 0; tries < 500 && connections() != wanted; tries++)
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    return connections() == wanted;
}

static int near_ranks(void) {
    const struct hpl_grid grid = hpl_grid_of(comm.size, comm.nodes, comm.node_of);
    int near = 0;
    for (int r = 0; r < comm.size; r++)
        near += r != comm.rank && hpl_grid_near(&grid, comm.rank, r);
    return near;
}

static void few_connections_serve_sums_and_barriers(void **state) {
    static int64_t number[NUMBERS];
    double sum = 1.0 / (comm.rank + 1), expected = 0;
    (void)state;
    CHECK(comm.nodes == comm.size / NODE);
    CHECK(near_ranks() <= NEAR);
    hrt_net_comm_barrier(&comm);
    CHECK(keeps(near_ranks()));
    hrt_net_comm_all_reduce(&comm, &sum, 1, HRT_DOUBLE);
    for (int r = 0; r < comm.size; r++) expected += 1.0 / (r + 1);
    CHECK(sum == expected); // In the order of ranks.
    for (int again = 0; again < 3; again++) {
        const int count = again == 0 ? NUMBERS : again == 1 ? 513 : NUMBERS - 1;
        for (int i = 0; i < count; i++) number[i] = (int64_t)(comm.rank + 1) * (i + 1);
        hrt_net_comm_all_reduce(&comm, number, count, HRT_INT64);
        for (int i = 0; i < count; i++)
            CHECK(number[i] == (int64_t)comm.size * (comm.size + 1) / 2 * (i + 1));
    }
    CHECK(keeps(near_ranks()));
    hrt_net_comm_barrier(&comm); // Others may connect from here on.
}

// Both ranks of a pair begin at once.
static void far_ranks_connect_when_they_have_something_to_say(void **state) {
    const int peer = (comm.rank + comm.size / 2) % comm.size;
    const struct hpl_grid grid = hpl_grid_of(comm.size, comm.nodes, comm.node_of);
    struct hrt_step step[4];
    struct hrt_steps steps = {.step = step, .room = 4};
    int64_t sent[2] = {comm.rank, -comm.rank}, received[2] = {0};
    (void)state;
    CHECK(!hpl_grid_near(&grid, comm.rank, peer));
    for (int i = 0; i < 2; i++) {
        hrt_net_steps_receive(&steps, peer, &received[i], sizeof *received, -1);
        hrt_net_steps_send(&steps, peer, &sent[i], sizeof *sent, -1);
    }
    hrt_net_lane_join(&comm, hrt_net_lane_submit(&comm, HRT_LANE_ROWS, &steps), "a far rank");
    CHECK(received[0] == peer && received[1] == -peer);
    CHECK(keeps(near_ranks() + 1));
    hrt_net_comm_barrier(&comm);
}

// The program does nothing for them meanwhile.
static void rounds_go_on_behind_the_caller(void **state) {
    const struct hpl_grid grid = hpl_grid_of(comm.size, comm.nodes, comm.node_of);
    int32_t *block = calloc((size_t)comm.size, sizeof *block);
    struct hrt_step *step = calloc(2 * (size_t)comm.size, sizeof *step);
    struct hrt_steps steps = {.step = step, .room = 2 * comm.size};
    (void)state;
    CHECK(block && step);
    block[hrt_net_gathered_at(&grid, comm.rank, comm.rank)] = 1 + comm.rank;
    hrt_net_steps_all_gather(&steps, &grid, comm.rank, block, sizeof *block);
    const struct hrt_mark mark = hrt_net_lane_submit(&comm, HRT_LANE_COUNTS, &steps);
    for (int tries = 0; tries < 1000 && !hrt_net_lane_reached(&comm, mark); tries++)
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    CHECK(hrt_net_lane_reached(&comm, mark));
    for (int r = 0; r < comm.size; r++)
        CHECK(block[hrt_net_gathered_at(&grid, comm.rank, r)] == 1 + r);
    free(block);
    free(step);
}

static void all_connect_where_all_have_something_to_say(void **state) {
    static float sum[FLOATS];
    (void)state;
    for (int i = 0; i < FLOATS; i++) sum[i] = (float)(comm.rank + i);
    hrt_net_comm_all_reduce(&comm, sum, FLOATS, HRT_FLOAT);
    for (int i = 0; i < FLOATS; i++)
        CHECK(sum[i] == (float)(comm.size * (comm.size - 1) / 2 + comm.size * i));
    CHECK(keeps(comm.size - 1));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(few_connections_serve_sums_and_barriers),
        cmocka_unit_test(far_ranks_connect_when_they_have_something_to_say),
        cmocka_unit_test(rounds_go_on_behind_the_caller),
        cmocka_unit_test(all_connect_where_all_have_something_to_say),
    };
    const int ranks = atoi(getenv("HECATE_RANKS")), file = memfd_create("topology", 0);
    char path[32];
    for (int r = 0; r < ranks; r += NODE) dprintf(file, "%d-%d\n", r, r + NODE - 1);
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    ranks_open(&comm, path);
    close(file);
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    hrt_net_comm_close(&comm);
    return failed;
}
