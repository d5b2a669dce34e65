// The executor for GPUs: NCCL's messages and kernels that add, on streams of their own. A library of its own, which only
// programs of several ranks for target cuda are linked with.
//
// A lane that moves device memory has a communicator and a stream. A list is turned into launches at once: groups of
// messages and, between them, copies and adds, in the order of the list. A group ends where the round does, or before
// the first message that has to wait for a step which is not launched yet. So, of all messages that are left, the
// first one in the order of the schedule is in a group of both its ranks whose predecessors are done: nothing waits
// in a circle.
#define _GNU_SOURCE // The program's name.
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cuda_runtime_api.h>
#include <nccl.h>

#include "kernels/add/add_cuda.h"
#include "runtime/base/error.h"
#include "runtime/comm/backend.h"
#include "runtime/device/device.h"
#include "runtime/transport/transport.h"

enum { EVENTS = 8 }; // Lists of a lane that can be told apart.

struct lane {
    struct hkc_lane work; // Its stream.
    ncclComm_t comm;
    cudaEvent_t begun;        // What the device had been asked for when a list came.
    cudaEvent_t done[EVENTS]; // Of list n: n % EVENTS.
    uint64_t submitted;
    uint64_t ordered; // Lists up to this one the device has been asked to wait for.
};

struct own {
    struct hrt_device *device;
    struct lane lane[HRT_LANES];
};

// ---- faults

_Noreturn static void fail(struct hrt_comm *comm, const char *what, const char *why) {
    fflush(stdout);
    fprintf(stderr, "%s: error: rank %d: NCCL, %s: %s\n", program_invocation_short_name, comm->rank,
            what, why);
    hrt_comm_abort(comm, HRT_EXIT_FAILED);
}

static void check(struct hrt_comm *comm, const char *what, ncclResult_t result) {
    if (result != ncclSuccess) fail(comm, what, ncclGetErrorString(result));
}

static void check_cuda(struct hrt_comm *comm, const char *what, cudaError_t error) {
    if (error != cudaSuccess) fail(comm, what, cudaGetErrorString(error));
}

// Nothing says who does not come: NCCL names no rank.
static void lose_patience(struct hrt_comm *comm) {
    char why[160];
    snprintf(why, sizeof why,
             "this rank's GPU has waited for others for %d s; one hangs, or its network is gone "
             "(HECATE_COMM_PATIENCE=SECONDS allows more)",
             comm->patience);
    fail(comm, "a message", why);
}

// Errors that NCCL finds later, on its own threads, and ranks that do not come.
static void look(void *context, double seconds) {
    struct hrt_comm *comm = context;
    struct own *own = comm->executor_own;
    const int turn = comm->rank < 10 ? comm->rank : 10; // One speaks, and ends the others.
    if (!comm->patient && comm->patience > 0 && seconds > comm->patience + turn)
        lose_patience(comm);
    for (int i = 0; i < HRT_LANES; i++) {
        ncclResult_t later = ncclSuccess;
        if (own->lane[i].comm) ncclCommGetAsyncError(own->lane[i].comm, &later);
        if (later == ncclSuccess || later == ncclInProgress) continue;
        // The rank at fault says why and ends the job: this one speaks if nobody has in 5 s.
        for (int wait = 0; later == ncclRemoteError && wait < 50; wait++) usleep(100000);
        fail(comm, "a message", ncclGetErrorString(later));
    }
}

// ---- opening

// Lanes that may have lists on the device.
static bool moves(int lane) {
    return lane != HRT_LANE_COUNTS;
}

// Every rank gets rank 0's ids.
static void share_ids(struct hrt_comm *comm, ncclUniqueId *id) {
    enum { WORDS = sizeof *id / sizeof(int64_t) };
    int64_t word[HRT_LANES * WORDS] = {0};
    _Static_assert(sizeof *id % sizeof *word == 0, "ids are whole numbers");
    for (int i = 0; i < HRT_LANES && comm->rank == 0; i++) {
        check(comm, "its start", ncclGetUniqueId(&id[i]));
        memcpy(&word[i * WORDS], &id[i], sizeof *id);
    }
    hrt_comm_all_reduce(comm, word, HRT_LANES * WORDS, HRT_INT64);
    for (int i = 0; i < HRT_LANES; i++) memcpy(&id[i], &word[i * WORDS], sizeof *id);
}

static bool open_stream(struct lane *lane, const struct hrt_device *device,
                        struct hrt_error *error) {
    lane->work = (struct hkc_lane){.multiprocessors = device->lane->multiprocessors,
                                   .capability = device->lane->capability};
    cudaError_t status = cudaStreamCreateWithFlags(&lane->work.stream, cudaStreamNonBlocking);
    if (status == cudaSuccess)
        status = cudaEventCreateWithFlags(&lane->begun, cudaEventDisableTiming);
    for (int i = 0; i < EVENTS && status == cudaSuccess; i++)
        status = cudaEventCreateWithFlags(&lane->done[i], cudaEventDisableTiming);
    if (status == cudaSuccess) return true;
    return hrt_fail(error, "a stream for messages cannot be made: %s", cudaGetErrorString(status));
}

static bool open_nccl(struct hrt_comm *comm, struct hrt_device *device, struct hrt_error *error) {
    struct own *own = calloc(1, sizeof *own);
    if (!own) return hrt_fail(error, "out of memory");
    own->device = device;
    comm->executor = &hrt_executor_nccl;
    comm->executor_own = own;
    for (int i = 0; i < HRT_LANES; i++) {
        if (moves(i) && !open_stream(&own->lane[i], device, error)) return false;
    }
    return true;
}

// A rank that fails here ends the job: the others wait for it inside of NCCL, where nothing can be said to them.
static void join_nccl(struct hrt_comm *comm) {
    struct own *own = comm->executor_own;
    ncclUniqueId id[HRT_LANES];
    share_ids(comm, id);
    for (int i = 0; i < HRT_LANES; i++) {
        if (moves(i))
            check(comm, "joining the ranks",
                  ncclCommInitRank(&own->lane[i].comm, comm->size, id[i], comm->rank));
    }
    own->device->look = look;
    own->device->look_context = comm;
}

static void close_lane(struct lane *lane) {
    if (lane->work.stream) cudaStreamSynchronize(lane->work.stream);
    if (lane->comm) ncclCommDestroy(lane->comm);
    for (int i = 0; i < EVENTS; i++) {
        if (lane->done[i]) cudaEventDestroy(lane->done[i]);
    }
    if (lane->begun) cudaEventDestroy(lane->begun);
    if (lane->work.stream) cudaStreamDestroy(lane->work.stream);
}

static void close_nccl(struct hrt_comm *comm) {
    struct own *own = comm->executor_own;
    own->device->look = NULL;
    for (int i = 0; i < HRT_LANES; i++) close_lane(&own->lane[i]);
    free(own);
    comm->executor = NULL;
    comm->executor_own = NULL;
}

// A guess: nothing says it before. Channels to every peer have buffers in both directions, in every communicator.
static size_t bytes_of(int ranks) {
    enum { MIB = 1 << 20, ALONE = 32 * MIB, PEER = 16 * MIB };
    size_t lanes = 0;
    for (int i = 0; i < HRT_LANES; i++) lanes += moves(i);
    return lanes * (ALONE + (size_t)(ranks - 1) * PEER);
}

// ---- lists

static bool is_message(const struct hrt_step *step) {
    return step->kind == HRT_SEND || step->kind == HRT_RECV;
}

static bool is_ready(const struct hrt_steps *steps, const struct hrt_step *step) {
    for (int i = 0; i < 2; i++) {
        if (step->after[i] >= 0 && !steps->step[step->after[i]].done) return false;
    }
    return true;
}

static void run(struct hrt_comm *comm, struct lane *lane, const struct hrt_step *step) {
    if (step->kind == HRT_COPY) {
        check_cuda(comm, "a copy",
                   cudaMemcpyAsync(step->to, step->from, step->bytes, cudaMemcpyDefault,
                                   lane->work.stream));
        return;
    }
    assert(step->kind == HRT_ADD && step->type == HRT_FLOAT);
    hkc_add_f32(&lane->work, step->to, step->from, (int64_t)(step->bytes / sizeof(float)));
    check_cuda(comm, "a sum", (cudaError_t)lane->work.error);
}

// Launches copies and adds that wait for nothing else.
static void run_ready(struct hrt_comm *comm, struct lane *lane, struct hrt_steps *steps) {
    for (int32_t i = steps->head; i < steps->count; i++) {
        struct hrt_step *step = &steps->step[i];
        if (step->done || is_message(step) || !is_ready(steps, step)) continue;
        run(comm, lane, step);
        step->done = true;
        steps->left--;
    }
}

static void post(struct hrt_comm *comm, struct lane *lane, const struct hrt_step *step) {
    const bool sends = step->kind == HRT_SEND;
    check(comm, sends ? "a send" : "a receive",
          sends ? ncclSend(step->from, step->bytes, ncclUint8, step->peer, lane->comm,
                           lane->work.stream)
                : ncclRecv(step->to, step->bytes, ncclUint8, step->peer, lane->comm,
                           lane->work.stream));
}

// Launches the next group: messages of one round, up to the first that has to wait.
static void send_group(struct hrt_comm *comm, struct lane *lane, struct hrt_steps *steps) {
    int32_t first = -1, i;
    check(comm, "a group", ncclGroupStart());
    for (i = steps->head; i < steps->count; i++) {
        const struct hrt_step *step = &steps->step[i];
        if (step->done || !is_message(step)) continue;
        if (first < 0) first = i;
        if (!is_ready(steps, step) || step->round != steps->step[first].round) break;
        post(comm, lane, step);
    }
    check(comm, "a group", ncclGroupEnd());
    for (int32_t k = steps->head; k < i; k++) {
        struct hrt_step *step = &steps->step[k];
        if (step->done || !is_message(step)) continue;
        step->done = true;
        steps->left--;
    }
}

static void launch(struct hrt_comm *comm, struct lane *lane, struct hrt_steps *steps) {
    steps->head = 0;
    steps->left = steps->count;
    for (int32_t i = 0; i < steps->count; i++) steps->step[i].done = false;
    while (steps->left > 0) {
        const int32_t left = steps->left;
        run_ready(comm, lane, steps);
        send_group(comm, lane, steps);
        while (steps->head < steps->count && steps->step[steps->head].done) steps->head++;
        assert(steps->left < left); // Steps follow those that they wait for.
        (void)left;
    }
}

static void submit(struct hrt_comm *comm, enum hrt_lane number, struct hrt_steps *steps) {
    struct own *own = comm->executor_own;
    struct lane *lane = &own->lane[number];
    assert(moves(number));
    check_cuda(comm, "an event", cudaEventRecord(lane->begun, own->device->lane->stream));
    check_cuda(comm, "an event", cudaStreamWaitEvent(lane->work.stream, lane->begun, 0));
    do {
        launch(comm, lane, steps);
    } while (steps->next && steps->next(steps));
    steps->number = ++lane->submitted;
    check_cuda(comm, "an event",
               cudaEventRecord(lane->done[steps->number % EVENTS], lane->work.stream));
}

// A list so old that its event has been used again is done when the one that has it is.
static void order(struct hrt_comm *comm, struct hrt_mark mark) {
    struct own *own = comm->executor_own;
    struct lane *lane = &own->lane[mark.lane];
    const uint64_t oldest = lane->submitted > EVENTS ? lane->submitted - EVENTS + 1 : 1;
    const uint64_t number = mark.number > oldest ? mark.number : oldest;
    if (number <= lane->ordered) return;
    check_cuda(comm, "an event",
               cudaStreamWaitEvent(own->device->lane->stream, lane->done[number % EVENTS], 0));
    lane->ordered = number;
}

static void describe(char *text, size_t bytes) {
    int version = 0;
    ncclGetVersion(&version);
    snprintf(text, bytes, "NCCL %d.%d.%d", version / 10000, version / 100 % 100, version % 100);
}

const struct hrt_executor hrt_executor_nccl = {
    .name = "nccl",
    .describe = describe,
    .open = open_nccl,
    .join = join_nccl,
    .bytes = bytes_of,
    .submit = submit,
    .order = order,
    .close = close_nccl,
};
