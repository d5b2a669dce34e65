// The executor for GPUs of their own: NCCL's messages and kernels that add, on streams of their own. A library of its
// own, which only programs of several ranks for target cuda are linked with.
//
// A lane that moves device memory has a communicator and a stream. A list is turned into launches at once (launch.h):
// groups of messages and, between them, copies and adds.
//
// NCCL connects two ranks when they first have a message for each other, and blocks the host of either until the other
// comes to it. So every lane connects all ranks when they join, in one group that all of them have, on a thread that
// the caller looks after: a rank that does not come ends in our words. Communicators block: with `blocking = 0` every
// group is launched by a thread of its own, which takes 50 us of the host in place of 7 (measured on an H100, NCCL
// 2.28).
//
// Communicators share nothing (splitShare): those that do launch in one order, so that rows would wait behind chunks.
// For the same reason NCCL_LAUNCH_ORDER_IMPLICIT stays off. Kernels of several communicators may start in any order,
// and each needs all of its thread blocks: so all lanes together take no more than half of the multiprocessors.
#define _GNU_SOURCE // The program's name.
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cuda_runtime_api.h>
#include <nccl.h>

#include "kernels/cpu/observe.h"
#include "kernels/launchers.h"
#include "runtime/base/error.h"
#include "runtime/device/device.h"
#include "runtime/net/backend.h"
#include "runtime/net/device_step.h"
#include "runtime/net/launch.h"
#include "runtime/net/transport.h"

enum { EVENTS = 8 }; // Lists of a lane that can be told apart.

struct lane {
    struct hkc_lane work; // Its stream.
    ncclComm_t comm;
    cudaEvent_t begun;        // Marks the work queued before a list.
    cudaEvent_t done[EVENTS]; // Marks the end of list n: n % EVENTS.
    uint64_t submitted;
    uint64_t ordered; // Lists up to this one the device has been asked to wait for.
};

struct own {
    struct hrt_device *device;
    struct lane lane[HRT_LANES];
};

// ---- faults

static void check(struct hrt_comm *comm, const char *what, ncclResult_t result) {
    if (result != ncclSuccess) hrt_net_executor_fail(comm, what, ncclGetErrorString(result));
}

static void check_cuda(struct hrt_comm *comm, const char *what, cudaError_t error) {
    if (error != cudaSuccess) hrt_net_executor_fail(comm, what, cudaGetErrorString(error));
}

// The missing rank is unknown: NCCL names none. `what` has waited for so long, `hint` may help.
static void watch(struct hrt_comm *comm, double seconds, const char *what, const char *hint) {
    const int turn = comm->rank < 10 ? comm->rank : 10; // One speaks, and ends the others.
    char why[256];
    if (comm->patience <= 0 || seconds <= comm->patience + turn) return;
    snprintf(why, sizeof why,
             "this rank%s waited for others for %d s; one hangs, or its network is gone (%s"
             "HECATE_COMM_PATIENCE=SECONDS allows more)",
             what, comm->patience, hint);
    hrt_net_executor_fail(comm, "a message", why);
}

// An error that NCCL has found by itself.
_Noreturn static void fail_later(struct hrt_comm *comm, const char *what, ncclResult_t error) {
    // The rank at fault says why and ends the job: this one speaks if nobody has in 5 s.
    for (int wait = 0; error == ncclRemoteError && wait < 50; wait++) usleep(100000);
    hrt_net_executor_fail(comm, what, ncclGetErrorString(error));
}

// Errors that NCCL finds on its own threads, and ranks that do not come.
static void look(void *context, double seconds) {
    struct hrt_comm *comm = context;
    struct own *own = comm->executor_own;
    if (!comm->patient) watch(comm, seconds, "'s GPU has", "");
    for (int i = 0; i < HRT_LANES; i++) {
        ncclResult_t later = ncclSuccess;
        if (own->lane[i].comm) ncclCommGetAsyncError(own->lane[i].comm, &later);
        if (later != ncclSuccess && later != ncclInProgress) fail_later(comm, "a message", later);
    }
}

// ---- opening and joining

// Thread blocks of a lane, at most, each of which copies some 25 to 50 GB/s and takes buffers for every peer. Rows are
// waited for. 0: the lane has no lists on the device.
static const int blocks[HRT_LANES] = {
    [HRT_LANE_ROWS] = 8,   [HRT_LANE_GATHER] = 4, [HRT_LANE_ADDED] = 4,
    [HRT_LANE_REDUCE] = 4, [HRT_LANE_DENSE] = 4,  [HRT_LANE_SAVE] = 2,
};
enum { BLOCKS = 26 }; // All lanes together.

static bool moves(int lane) {
    return blocks[lane] > 0;
}

// All lanes have at most half of the multiprocessors; a block each in any case.
static int blocks_of(int lane, int multiprocessors) {
    const int share = multiprocessors * blocks[lane] / (2 * BLOCKS);
    return share < 1 ? 1 : share < blocks[lane] ? share : blocks[lane];
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
    hrt_net_comm_all_reduce(comm, word, HRT_LANES * WORDS, HRT_INT64);
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

// The first message of a rank to another one, on each lane.
struct greeting {
    int32_t lane, from, to, ranks;
};

// Communicators in the making, on a thread of their own.
struct joining {
    const struct hrt_comm *comm;
    struct own *own;
    int gpu;
    ncclUniqueId id[HRT_LANES];
    struct greeting *said, *heard; // [ranks] of the host, and of the device: to all, and from all.
    struct greeting *out, *in;
    // Once the thread is done: the call that failed, and how; NULL: none.
    const char *what;
    ncclResult_t result;
    cudaError_t status;
    atomic_bool done;
};

static bool joined(struct joining *joining, const char *what, ncclResult_t result) {
    if (result == ncclSuccess) return true;
    joining->what = what;
    joining->result = result;
    return false;
}

static bool reached(struct joining *joining, const char *what, cudaError_t status) {
    if (status == cudaSuccess) return true;
    joining->what = what;
    joining->status = status;
    return false;
}

// Every two ranks' first messages, in one group: it connects them.
static bool greet(struct joining *joining, const struct lane *lane) {
    const int size = joining->comm->size, rank = joining->comm->rank;
    bool sound = joined(joining, "the first messages", ncclGroupStart());
    for (int i = 1; i < size && sound; i++) {
        const int to = (rank + i) % size, from = (rank + size - i) % size;
        sound = joined(joining, "the first messages",
                       ncclSend(&joining->out[to], sizeof *joining->out, ncclUint8, to, lane->comm,
                                lane->work.stream)) &&
                joined(joining, "the first messages",
                       ncclRecv(&joining->in[from], sizeof *joining->in, ncclUint8, from,
                                lane->comm, lane->work.stream));
    }
    return sound && joined(joining, "the first messages", ncclGroupEnd());
}

// Checks that NCCL delivers the greetings unchanged.
static bool check_greetings(struct joining *joining, int number) {
    const int size = joining->comm->size, rank = joining->comm->rank;
    for (int r = 0; r < size; r++) {
        const struct greeting expected = {number, r, rank, size};
        if (r == rank || memcmp(&joining->heard[r], &expected, sizeof expected) == 0) continue;
        return joined(joining, "first messages, which are not what was sent", ncclInternalError);
    }
    return true;
}

static bool connect_lane(struct joining *joining, int number) {
    const int size = joining->comm->size, rank = joining->comm->rank;
    const size_t bytes = (size_t)size * sizeof *joining->said;
    struct lane *lane = &joining->own->lane[number];
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 1;
    config.maxCTAs = blocks_of(number, lane->work.multiprocessors);
    for (int r = 0; r < size; r++) joining->said[r] = (struct greeting){number, rank, r, size};
    return joined(joining, "joining the ranks",
                  ncclCommInitRankConfig(&lane->comm, size, joining->id[number], rank, &config)) &&
           reached(joining, "a copy",
                   cudaMemcpyAsync(joining->out, joining->said, bytes, cudaMemcpyDefault,
                                   lane->work.stream)) &&
           greet(joining, lane) &&
           reached(joining, "a copy",
                   cudaMemcpyAsync(joining->heard, joining->in, bytes, cudaMemcpyDefault,
                                   lane->work.stream)) &&
           reached(joining, "the first messages", cudaStreamSynchronize(lane->work.stream)) &&
           check_greetings(joining, number);
}

static void *connect_all(void *context) {
    struct joining *joining = context;
    bool sound = reached(joining, "its GPU", cudaSetDevice(joining->gpu));
    for (int i = 0; i < HRT_LANES && sound; i++) {
        if (moves(i)) sound = connect_lane(joining, i);
    }
    atomic_store(&joining->done, true);
    return NULL;
}

static void take_greetings(struct joining *joining) {
    const size_t count = (size_t)joining->comm->size;
    joining->said = calloc(2 * count, sizeof *joining->said);
    const cudaError_t status = cudaMalloc((void **)&joining->out, 2 * count * sizeof *joining->out);
    if (!joining->said) joining->status = cudaErrorMemoryAllocation;
    if (status != cudaSuccess) joining->status = status;
    if (joining->status != cudaSuccess) joining->what = "memory for the first messages";
    joining->heard = joining->said + count;
    joining->in = joining->out + count;
}

// Leaves it to a thread, and looks after that one. All ranks come at once: patience with files is for others.
static void connect_on_thread(struct hrt_comm *comm, struct joining *joining) {
    const int64_t begun = hk_clock();
    pthread_t thread;
    if (joining->what) return;
    if (pthread_create(&thread, NULL, connect_all, joining) != 0)
        hrt_net_executor_fail(comm, "joining the ranks", "a thread cannot be made");
    while (!atomic_load(&joining->done)) {
        watch(comm, (double)(hk_clock() - begun) * 1e-9, ", joining them over NCCL, has",
              "NCCL_DEBUG=WARN may say which, NCCL_SOCKET_IFNAME which network; ");
        usleep(1000);
    }
    pthread_join(thread, NULL);
}

// A rank that fails here ends the job: the others wait for it inside of NCCL, where nothing can be said to them.
static void join_nccl(struct hrt_comm *comm) {
    struct own *own = comm->executor_own;
    struct joining joining = {.comm = comm, .own = own};
    share_ids(comm, joining.id);
    cudaGetDevice(&joining.gpu);
    take_greetings(&joining);
    connect_on_thread(comm, &joining);
    if (joining.what && joining.status != cudaSuccess)
        hrt_net_executor_fail(comm, joining.what, cudaGetErrorString(joining.status));
    if (joining.what) fail_later(comm, joining.what, joining.result);
    check_cuda(comm, "the first messages", cudaFree(joining.out));
    free(joining.said);
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

// An estimate, since NCCL tells no number, and free memory is known only after. Measured on an H100: a communicator
// of one rank took 4 MiB and 6 MiB a block (NCCL 2.28), those of four ranks 5 MiB more for each block and peer (2.30).
// Others have seen up to 12 MiB.
static size_t bytes_of(int ranks) {
    enum { MIB = 1 << 20, ALONE = 4 * MIB, BLOCK = 6 * MIB, PEER = 5 * MIB, NODE = 8 };
    const size_t peers = (size_t)(ranks < NODE ? ranks : NODE) - 1;
    size_t bytes = 0;
    for (int i = 0; i < HRT_LANES; i++) {
        if (moves(i)) bytes += ALONE + (size_t)blocks[i] * (BLOCK + peers * PEER);
    }
    return bytes;
}

// ---- lists

// A lane that is asked for a list.
struct asked {
    struct hrt_comm *comm;
    struct lane *lane;
    struct hrt_net_batch batch;
};

static void run(void *context, const struct hrt_step *step) {
    struct asked *asked = context;
    check_cuda(asked->comm, "a copy or a sum", hrt_net_device_gather(&asked->batch, step));
}

static void flush(struct asked *asked) {
    check_cuda(asked->comm, "copies or sums", hrt_net_device_flush(&asked->batch));
}

static void begin_group(void *context) {
    struct asked *asked = context;
    flush(asked);
    check(asked->comm, "a group", ncclGroupStart());
}

static void post(void *context, const struct hrt_step *step) {
    const struct asked *asked = context;
    const struct lane *lane = asked->lane;
    const bool sends = step->kind == HRT_SEND;
    check(asked->comm, sends ? "a send" : "a receive",
          sends ? ncclSend(step->from, step->bytes, ncclUint8, step->peer, lane->comm,
                           lane->work.stream)
                : ncclRecv(step->to, step->bytes, ncclUint8, step->peer, lane->comm,
                           lane->work.stream));
}

static void end_group(void *context) {
    const struct asked *asked = context;
    check(asked->comm, "a group", ncclGroupEnd());
}

static void submit(struct hrt_comm *comm, enum hrt_lane number, struct hrt_steps *steps) {
    struct own *own = comm->executor_own;
    struct lane *lane = &own->lane[number];
    struct asked asked = {comm, lane, {.lane = &lane->work}};
    const struct hrt_launch launch = {&asked, run, begin_group, post, end_group};
    assert(moves(number));
    check_cuda(comm, "an event", cudaEventRecord(lane->begun, own->device->lane->stream));
    check_cuda(comm, "an event", cudaStreamWaitEvent(lane->work.stream, lane->begun, 0));
    do {
        hrt_net_launch_steps(steps, &launch);
        flush(&asked);
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
    .name = "NCCL",
    .describe = describe,
    .open = open_nccl,
    .join = join_nccl,
    .bytes = bytes_of,
    .submit = submit,
    .order = order,
    .close = close_nccl,
};
