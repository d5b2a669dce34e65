// One rank of a test of the double of NCCL: nccl_ranks RANK SIZE FILE CASE, see nccl_test.sh. FILE carries the unique id.
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

// What comes around a ring; the source changes behind the messages, on the same stream.
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
