// One rank of a test of the fake of NCCL: nccl_ranks RANK SIZE FILE CASE, see nccl_test.sh. FILE carries the unique id.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cuda_runtime_api.h>
#include <nccl.h>

enum { COUNT = 1000, ROUNDS = 5, BYTES = COUNT * (int)sizeof(float) };

static int rank, size;
static ncclComm_t comm;
static cudaStream_t stream;
static float *to, *from, *seen;

static void must(int error, const char *what) {
    if (error == 0) return;
    fprintf(stderr, "%s: %d\n", what, error);
    exit(3);
}
#define MUST(call) must((int)(call), #call)

static void exchange_id(ncclUniqueId *id, const char *path) {
    char part[512];
    FILE *file = NULL;
    if (rank == 0) {
        MUST(ncclGetUniqueId(id));
        snprintf(part, sizeof part, "%s+", path);
        file = fopen(part, "wb");
        if (!file || fwrite(id, sizeof *id, 1, file) != 1 || fclose(file) != 0) exit(3);
        MUST(rename(part, path));
        return;
    }
    while (!(file = fopen(path, "rb"))) usleep(1000);
    if (fread(id, sizeof *id, 1, file) != 1) exit(3);
    fclose(file);
}

static void connect_ranks(const char *path) {
    ncclUniqueId id;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    exchange_id(&id, path);
    const ncclResult_t begun = ncclCommInitRankConfig(&comm, size, id, rank, &config);
    must(begun != ncclInProgress && begun != ncclSuccess, "ncclCommInitRankConfig");
    ncclResult_t state = ncclInProgress;
    while (state == ncclInProgress) {
        MUST(ncclCommGetAsyncError(comm, &state));
        usleep(100);
    }
    MUST(state);
}

// Values around a ring; the source changes behind the messages, on the same stream.
static void ring(void) {
    const int next = (rank + 1) % size, last = (rank + size - 1) % size;
    for (int round = 0; round < ROUNDS; round++) {
        MUST(cudaMemsetAsync(from, 16 * rank + round, BYTES, stream));
        MUST(ncclGroupStart());
        MUST(ncclSend(from, COUNT, ncclFloat, next, comm, stream));
        MUST(ncclRecv(to, COUNT, ncclFloat, last, comm, stream));
        MUST(ncclGroupEnd());
        MUST(cudaMemcpyAsync(seen, to, BYTES, cudaMemcpyDeviceToHost, stream));
        MUST(cudaStreamSynchronize(stream));
        const unsigned char *bytes = (const unsigned char *)seen;
        for (int i = 0; i < BYTES; i++) must(bytes[i] != 16 * last + round, "what came around");
    }
}

// Rank 0 sends a long and a short message.
static void order_or_count(size_t first, size_t second) {
    if (rank == 0) {
        MUST(ncclSend(from, COUNT, ncclFloat, 1, comm, stream));
        MUST(ncclSend(from, 10, ncclFloat, 1, comm, stream));
    } else if (rank == 1) {
        MUST(ncclRecv(to, first, ncclFloat, 0, comm, stream));
        MUST(ncclRecv(to, second, ncclFloat, 0, comm, stream));
    }
    MUST(cudaStreamSynchronize(stream));
}

// All send before they receive: a send may wait for its receiver.
static void ungrouped(void) {
    MUST(ncclSend(from, COUNT, ncclFloat, (rank + 1) % size, comm, stream));
    MUST(ncclRecv(to, COUNT, ncclFloat, (rank + size - 1) % size, comm, stream));
    MUST(cudaStreamSynchronize(stream));
}

// One chunk of rank 0's on three ranks, in two segments that travel on ways of their own. `cut`: each rank's groups are those
// of its own list, up to a message that waits; else those of rounds.
static void relay(int cut) {
    const int other = 3 - rank; // The other one that receives.
    const size_t count = COUNT / 2;
    float *own = to + (rank == 1 ? 0 : count), *others = to + (rank == 1 ? count : 0);
    MUST(ncclGroupStart());
    if (rank == 0) {
        MUST(ncclSend(from, count, ncclFloat, 1, comm, stream));
        MUST(ncclSend(from + count, count, ncclFloat, 2, comm, stream));
        MUST(ncclGroupEnd());
    } else if (rank == 1 || !cut) {
        MUST(ncclRecv(own, count, ncclFloat, 0, comm, stream));
        MUST(ncclGroupEnd());
        MUST(ncclGroupStart());
        MUST(ncclSend(own, count, ncclFloat, other, comm, stream));
        MUST(ncclRecv(others, count, ncclFloat, other, comm, stream));
        MUST(ncclGroupEnd());
    } else {
        MUST(ncclRecv(others, count, ncclFloat, other, comm, stream));
        MUST(ncclGroupEnd());
        MUST(ncclRecv(own, count, ncclFloat, 0, comm, stream));
        MUST(ncclSend(own, count, ncclFloat, other, comm, stream));
    }
    MUST(cudaStreamSynchronize(stream));
}

// The first messages of all pairs, in one group.
static void warm_up(void) {
    MUST(ncclGroupStart());
    for (int i = 1; i < size; i++) {
        MUST(ncclSend(from, 1, ncclFloat, (rank + i) % size, comm, stream));
        MUST(ncclRecv(to + i, 1, ncclFloat, (rank + size - i) % size, comm, stream));
    }
    MUST(ncclGroupEnd());
}

// Rank 0's first message for rank 1 is in a group with one from it; rank 1 has these in two.
static void split_pair(void) {
    if (rank == 0) MUST(ncclGroupStart());
    MUST(rank == 0 ? ncclSend(from, COUNT, ncclFloat, 1, comm, stream)
                   : ncclRecv(to, COUNT, ncclFloat, 0, comm, stream));
    MUST(rank == 0 ? ncclRecv(to, COUNT, ncclFloat, 1, comm, stream)
                   : ncclSend(from, COUNT, ncclFloat, 0, comm, stream));
    if (rank == 0) MUST(ncclGroupEnd());
    MUST(cudaStreamSynchronize(stream));
}

static void a_rank_dies(int polls) {
    if (rank == 1) _Exit(9);
    MUST(ncclRecv(to, COUNT, ncclFloat, 1, comm, stream));
    if (!polls) MUST(cudaStreamSynchronize(stream));
    ncclResult_t state = ncclSuccess;
    while (state == ncclSuccess && cudaStreamQuery(stream) == cudaErrorNotReady) {
        MUST(ncclCommGetAsyncError(comm, &state));
    }
    fprintf(stderr, "told: %s\n", ncclGetErrorString(state));
    MUST(ncclCommAbort(comm));
    MUST(cudaStreamSynchronize(stream));
    exit(state == ncclRemoteError ? 0 : 3);
}

int main(int count, char **arguments) {
    if (count != 5) return 2;
    rank = atoi(arguments[1]);
    size = atoi(arguments[2]);
    const char *name = arguments[4];
    connect_ranks(arguments[3]);
    MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    MUST(cudaMalloc((void **)&to, BYTES));
    MUST(cudaMalloc((void **)&from, BYTES));
    MUST(cudaMallocHost((void **)&seen, BYTES));
    if (strcmp(name, "cold_relay") == 0) relay(1);
    if (strcmp(name, "cold_rounds") == 0) relay(0);
    if (strcmp(name, "cold_pair") == 0) split_pair();
    if (strcmp(name, "warm_relay") == 0) warm_up(), relay(1);
    ring(); // So all are there before one of them does what is wrong.
    if (strcmp(name, "right") == 0) order_or_count(COUNT, 10);
    if (strcmp(name, "order") == 0) order_or_count(10, COUNT);
    if (strcmp(name, "count") == 0) order_or_count(COUNT, 11);
    if (strcmp(name, "ungrouped") == 0) ungrouped();
    if (strcmp(name, "dies") == 0) a_rank_dies(0);
    if (strcmp(name, "dies_and_is_seen") == 0) a_rank_dies(1);
    if (strcmp(name, "host") == 0) MUST(ncclSend(arguments, 1, ncclFloat, 0, comm, stream));
    MUST(ncclCommDestroy(comm));
    printf("rank %d is done\n", rank);
    return 0;
}
