// Test of jobs in the background, run by mpirun with 1, 2 and 4 ranks, with and without helper thread.
#include "runtime/comm/job.h"

#include <time.h>

#include "tests/runtime/mpi_case.h"

static struct hrt_comm comm;

#define CHECK(condition) RANKS_CHECK(&comm, condition)

enum { COUNT = 300000, JOBS = 3 }; // Floats: more than one MPI message.

// Rank 0 sends values around the ring; each rank adds its own to them before it sends them on; rank
// 0 gets the sums. Each step can only begin after the one before.
struct ring {
    struct hrt_job job;
    struct hrt_request send, recv;
    float *sum, *in;
    int tag;
    enum { BEGINS, RECEIVES, SENDS } state;
};

static void forward(struct ring *ring) {
    for (int i = 0; i < COUNT; i++) ring->sum[i] += (float)(comm.rank + 1) * (float)(i % 100 + 1);
    hrt_comm_isend(&comm, &ring->send, (comm.rank + 1) % comm.size, ring->tag, ring->sum,
                   COUNT * sizeof *ring->sum);
    ring->state = SENDS;
}

static bool advance(struct hrt_job *job, struct hrt_comm *given) {
    struct ring *ring = (struct ring *)job;
    if (given != &comm) return false;
    if (ring->state == BEGINS) {
        hrt_comm_irecv(given, &ring->recv, (comm.rank + comm.size - 1) % comm.size, ring->tag,
                       ring->in, COUNT * sizeof *ring->in);
        ring->state = RECEIVES;
        if (comm.rank == 0) forward(ring);
    }
    if (!hrt_comm_test(given, &ring->recv)) return false;
    if (ring->state == RECEIVES) {
        memcpy(ring->sum, ring->in, COUNT * sizeof *ring->sum);
        forward(ring);
    }
    return hrt_comm_test(given, &ring->send);
}

static void open_rings(struct ring *rings) {
    for (int j = 0; j < JOBS; j++) {
        rings[j] = (struct ring){.job.advance = advance, .tag = 40 + j};
        rings[j].sum = calloc(COUNT, sizeof *rings[j].sum);
        rings[j].in = calloc(COUNT, sizeof *rings[j].in);
        hrt_comm_start(&comm, &rings[j].job);
    }
}

static void close_rings(struct ring *rings) {
    for (int j = 0; j < JOBS; j++) {
        const float all = (float)(comm.size * (comm.size + 1) / 2);
        const float mine =
            (float)((comm.rank + 1) * (comm.rank + 2) / 2); // What this rank sent on.
        const float expected = comm.rank == 0 ? all : mine;
        CHECK(hrt_comm_finished(&comm, &rings[j].job));
        const float *got = comm.rank == 0 ? rings[j].in : rings[j].sum;
        for (int i = 0; i < COUNT; i++) CHECK(got[i] == expected * (float)(i % 100 + 1));
        free(rings[j].sum);
        free(rings[j].in);
    }
}

static void jobs_finish_in_any_order_waited_for(void **state) {
    (void)state;
    struct ring rings[JOBS];
    open_rings(rings);
    for (int j = JOBS - 1; j >= 0; j--) hrt_comm_wait(&comm, &rings[j].job, "a ring");
    close_rings(rings);
}

static void jobs_advance_while_other_messages_and_collectives_run(void **state) {
    (void)state;
    struct ring rings[JOBS];
    struct hrt_request send, recv;
    int in = -1;
    open_rings(rings);
    for (int round = 0; round < 20; round++) {
        double sum = comm.rank;
        hrt_comm_irecv(&comm, &recv, (comm.rank + comm.size - 1) % comm.size, 7, &in, sizeof in);
        hrt_comm_isend(&comm, &send, (comm.rank + 1) % comm.size, 7, &comm.rank, sizeof in);
        hrt_comm_all_reduce(&comm, &sum, 1, HRT_DOUBLE);
        CHECK(sum == comm.size * (comm.size - 1) / 2.0);
        while (!hrt_comm_test(&comm, &send) || !hrt_comm_test(&comm, &recv)) {
        }
        CHECK(in == (comm.rank + comm.size - 1) % comm.size);
    }
    for (int j = 0; j < JOBS; j++) hrt_comm_wait(&comm, &rings[j].job, "a ring");
    close_rings(rings);
}

// The caller computes, which here is sleep, or waits in a collective, and does not touch the jobs.
static void jobs_finish_behind_the_caller(void **state) {
    (void)state;
    struct ring rings[JOBS];
    const char *progress = getenv("HECATE_COMM_PROGRESS");
    const bool poll = progress && strcmp(progress, "poll") == 0;
    open_rings(rings);
    for (int look = 0; look < 600; look++) {
        double left = 0;
        for (int j = 0; j < JOBS; j++) left += !hrt_comm_finished(&comm, &rings[j].job);
        if (poll) hrt_comm_all_reduce(&comm, &left, 1, HRT_DOUBLE); // All leave at the same look.
        if (left == 0) break;
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    close_rings(rings);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(jobs_finish_in_any_order_waited_for),
        cmocka_unit_test(jobs_advance_while_other_messages_and_collectives_run),
        cmocka_unit_test(jobs_finish_behind_the_caller),
    };
    ranks_open(&comm, NULL);
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    hrt_comm_close(&comm);
    return failed;
}
