// Talks to the other ranks until it is killed, for mpi_lost.sh: mpi_loop RANK SIGNAL MILLISECONDS.
// RANK sends itself the signal after so long, wherever it then is. MILLISECONDS "end": all end well
// after 50 rounds. SIGNAL "busy": they do, but RANK talks to nobody for so long in between.
#include "tests/runtime/mpi_case.h"

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

static void talk(void) {
    enum { COUNT = 300000 };
    static float sums[COUNT];
    static char out[COUNT], in[COUNT];
    struct hrt_request send, recv;
    hrt_comm_irecv(&comm, &recv, (comm.rank + comm.size - 1) % comm.size, 1, in, COUNT);
    hrt_comm_isend(&comm, &send, (comm.rank + 1) % comm.size, 1, out, COUNT);
    hrt_comm_all_reduce(&comm, sums, COUNT, HRT_FLOAT);
    while (!hrt_comm_test(&comm, &send) || !hrt_comm_test(&comm, &recv)) {
    }
    hrt_comm_barrier(&comm);
}

int main(int argc, char **argv) {
    if (argc != 4) return 2;
    const bool busy = strcmp(argv[2], "busy") == 0, ends = busy || strcmp(argv[3], "end") == 0;
    ranks_open(&comm, getenv("HECATE_TOPOLOGY"));
    struct blow blow = {atoi(argv[2]), atol(argv[3])};
    pthread_t thread;
    if (!ends && comm.rank == atoi(argv[1])) pthread_create(&thread, NULL, strike, &blow);
    printf("talking, %d nodes\n", comm.nodes);
    fflush(stdout);
    for (int round = 0; !ends || round < 50; round++) {
        talk();
        if (busy && round == 25 && comm.rank == atoi(argv[1])) rest(atol(argv[3]));
    }
    hrt_comm_close(&comm);
    return 0;
}
