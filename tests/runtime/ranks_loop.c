// Talks to the other ranks until it is killed, for mpi_lost.sh and tcp_lost.sh: mpi_loop RANK SIGNAL MILLISECONDS.
// RANK sends itself the signal after so long, wherever it then is. MILLISECONDS "end": all end well
// after 50 rounds. SIGNAL "busy": they do, but RANK talks to nobody for so long in between. SIGNAL "less" or "more":
// RANK sends a byte less or more than is expected. SIGNAL "chain": rank 0 waits for rank 2 by way of rank 1, see below.
// SIGNAL "differ": RANK has another schedule than the others. SIGNAL "gather": RANK never comes to where the others
// tell each other something in rounds. SIGNAL "meet": all end once they have met, and rank 0 says how long that took.
#include "runtime/base/clock.h"
#include "runtime/net/all_gather.h"
#include "runtime/net/transport.h"
#include "tests/runtime/ranks_case.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

static struct hrt_comm comm;

struct blow {
    int signal;
    long milliseconds;
};

static void rest(long milliseconds) {
    nanosleep(
        &(struct timespec){.tv_sec = milliseconds / 1000, .tv_nsec = milliseconds % 1000 * 1000000},
        NULL);
}

static void *strike(void *argument) {
    const struct blow *blow = argument;
    rest(blow->milliseconds);
    kill(getpid(), blow->signal);
    return NULL;
}

static void talk(size_t less) {
    enum { COUNT = 300000 };
    static float sums[COUNT];
    static char out[COUNT + 1], in[COUNT];
    struct hrt_step step[2];
    struct hrt_steps steps = {.step = step, .room = 2};
    if (comm.size > 1) {
        hrt_net_steps_receive(&steps, (comm.rank + comm.size - 1) % comm.size, in, COUNT, -1);
        hrt_net_steps_send(&steps, (comm.rank + 1) % comm.size, out, COUNT - less, -1);
    }
    const struct hrt_mark mark = hrt_net_lane_submit(&comm, HRT_LANE_GATHER, &steps);
    hrt_net_comm_all_reduce(&comm, sums, COUNT, HRT_FLOAT);
    hrt_net_lane_join(&comm, mark, "a transfer");
    hrt_net_comm_barrier(&comm);
}

// Rank 0 waits for what rank 1 passes on. Rank 2, who is to send it, hangs. Rank 1 waits for it, too ("joins"), or does
// something else.
static void wait_in_a_chain(bool joins) {
    static char data[100];
    struct hrt_step step[2];
    struct hrt_steps steps = {.step = step, .room = 2};
    if (comm.rank == 2) rest(1000000);
    const int32_t first = hrt_net_steps_receive(&steps, comm.rank + 1, data, sizeof data, -1);
    if (comm.rank == 1) hrt_net_steps_send(&steps, 0, data, sizeof data, first);
    const struct hrt_mark mark = hrt_net_lane_submit(&comm, HRT_LANE_GATHER, &steps);
    if (comm.rank == 1 && !joins) rest(1000000);
    hrt_net_lane_join(&comm, mark, "a chain");
}

// The last one of four ranks waits for rank 1, which waits for rank 2: it alone loses patience.
static void lose_patience_last(void) {
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");
    if (rank && strcmp(rank, "3") != 0) setenv("HECATE_COMM_PATIENCE", "60", 1);
}

static void gather_in_rounds(int rank) {
    static int32_t blocks[HPL_DEVICES_MAX];
    static struct hrt_step step[2 * HPL_DEVICES_MAX];
    struct hrt_steps steps = {.step = step, .room = 2 * HPL_DEVICES_MAX};
    const struct hpl_grid grid = {1, comm.size};
    if (comm.rank == rank) rest(1000000);
    hrt_net_steps_all_gather(&steps, &grid, comm.rank, blocks, sizeof *blocks);
    hrt_net_lane_join(&comm, hrt_net_lane_submit(&comm, HRT_LANE_COUNTS, &steps), "rounds");
}

static char *place(const void *context, int32_t expert, int32_t piece, size_t *bytes) {
    (void)expert, (void)piece;
    *bytes = 8;
    return (char *)context;
}

// Rank 0 sends an expert to rank 1, which sends it on to rank 2: in another round, as RANK believes.
static void plan_differently(int rank) {
    struct hpl_transfer transfer[] = {{.from = 0, .to = 1, .round = 1},
                                      {.from = 1, .to = 2, .round = comm.rank == rank ? 3 : 2}};
    const struct hpl_schedule schedule = {.segments = 1, .count = 2, .transfer = transfer};
    struct hrt_step step[16];
    struct hrt_steps steps = {.step = step, .room = 16};
    int32_t brought;
    uint64_t heard[3];
    char data[8];
    hrt_net_steps_carry(&steps,
                        &(struct hrt_carry){.schedule = &schedule,
                                            .rank = comm.rank,
                                            .ranks = 3,
                                            .experts = 1,
                                            .pieces = 1,
                                            .place = place,
                                            .context = data,
                                            .brought = &brought,
                                            .heard = heard},
                        NULL);
    hrt_net_lane_join(&comm, hrt_net_lane_submit(&comm, HRT_LANE_GATHER, &steps), "a plan");
    hrt_net_comm_barrier(&comm);
}

int main(int argc, char **argv) {
    if (argc != 4) return 2;
    const size_t less = strcmp(argv[2], "less") == 0   ? 1
                        : strcmp(argv[2], "more") == 0 ? (size_t)-1
                                                       : 0;
    const bool busy = strcmp(argv[2], "busy") == 0, ends = busy || strcmp(argv[3], "end") == 0;
    if (strcmp(argv[2], "gather") == 0) lose_patience_last();
    const double begun = hrt_base_now();
    ranks_open(&comm, getenv("HECATE_TOPOLOGY"));
    if (strcmp(argv[2], "meet") == 0) {
        printf("%.3f s\n", hrt_base_now() - begun);
        hrt_net_comm_barrier(&comm);
        hrt_net_comm_close(&comm);
        return 0;
    }
    struct blow blow = {atoi(argv[2]), atol(argv[3])};
    pthread_t thread;
    if (!ends && less == 0 && comm.rank == atoi(argv[1]))
        pthread_create(&thread, NULL, strike, &blow);
    if (strcmp(argv[2], "chain") == 0) wait_in_a_chain(strcmp(argv[3], "joins") == 0);
    if (strcmp(argv[2], "differ") == 0) plan_differently(atoi(argv[1]));
    if (strcmp(argv[2], "gather") == 0) gather_in_rounds(atoi(argv[1]));
    printf("talking, %d nodes\n", comm.nodes);
    fflush(stdout);
    for (int round = 0; !ends || round < 50; round++) {
        talk(comm.rank == atoi(argv[1]) ? less : 0);
        if (busy && round == 25 && comm.rank == atoi(argv[1])) rest(atol(argv[3]));
    }
    hrt_net_comm_close(&comm);
    return 0;
}
