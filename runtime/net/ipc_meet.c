// The memory that ranks of one machine share: each lets others write to memory of its GPU, by a handle of CUDA IPC, and
// all map one piece of the machine's memory for words, which their GPUs reach, too.
#define _GNU_SOURCE // The program's name.
#include "runtime/net/ipc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

void hrt_ipc_check(struct hrt_comm *comm, const char *what, cudaError_t error) {
    if (error != cudaSuccess) hrt_net_executor_fail(comm, what, cudaGetErrorString(error));
}

// ---- places

// Bytes of a piece that HECATE_IPC_PIECE asks for, in KiB; 0: it asks for nonsense.
static size_t piece_of(const char *text) {
    char *end;
    if (!text || !*text) return HRT_IPC_PIECE;
    errno = 0;
    const long kib = strtol(text, &end, 10);
    const bool sound = errno == 0 && !*end && kib >= 1 && kib <= HRT_IPC_PIECE >> 10;
    return sound ? (size_t)kib << 10 : 0;
}

static size_t ring_bytes(const struct hrt_ipc *ipc) {
    return HRT_IPC_PLACES * ipc->piece;
}

// Whole pages of a GPU, so that a handle shows nothing else.
static size_t inbox_bytes(size_t piece, int ranks) {
    enum { PAGE = 2 << 20 };
    const size_t bytes = (size_t)HRT_IPC_LANES * (size_t)(ranks - 1) * HRT_IPC_PLACES * piece;
    return (bytes + PAGE - 1) / PAGE * PAGE;
}

static size_t words_bytes(int ranks) {
    enum { PAGE = 4096 };
    const size_t bytes =
        (size_t)HRT_IPC_LANES * (size_t)ranks * (size_t)ranks * sizeof(struct hrt_ipc_words);
    return (bytes + PAGE - 1) / PAGE * PAGE;
}

size_t hrt_ipc_bytes(int ranks) {
    const size_t piece = piece_of(getenv("HECATE_IPC_PIECE"));
    return ranks > 1 ? inbox_bytes(piece, ranks) : 0;
}

// Numbers those lanes that move.
static size_t number_of(int lane) {
    _Static_assert(HRT_LANE_COUNTS == 0, "the lane that does not move is the first one");
    return (size_t)lane - 1;
}

// The ring from one rank to another lies in the inbox of the second.
static char *ring_at(const struct hrt_ipc *ipc, char *inbox, int lane, int from, int to) {
    const size_t others = (size_t)ipc->comm->size - 1;
    const size_t number = number_of(lane) * others + (size_t)(from < to ? from : from - 1);
    return inbox + number * ring_bytes(ipc);
}

// ---- taking

static bool refuse(struct hrt_error *error, const char *what, cudaError_t status) {
    return hrt_fail(error, "ranks cannot share memory of GPUs (HECATE_TRANSPORT=ipc), %s: %s", what,
                    cudaGetErrorString(status));
}

static bool take_side(struct hrt_ipc_side *side, const struct hrt_device *device,
                      struct hrt_error *error) {
    side->work = (struct hkc_lane){.multiprocessors = device->lane->multiprocessors,
                                   .capability = device->lane->capability};
    cudaError_t status = cudaStreamCreateWithFlags(&side->work.stream, cudaStreamNonBlocking);
    for (int i = 0; i < HRT_IPC_EVENTS && status == cudaSuccess; i++)
        status = cudaEventCreateWithFlags(&side->done[i], cudaEventDisableTiming);
    return status == cudaSuccess || refuse(error, "a stream cannot be made", status);
}

static bool take_lane(struct hrt_ipc *ipc, struct hrt_ipc_lane *lane, struct hrt_error *error) {
    const cudaError_t status = cudaEventCreateWithFlags(&lane->begun, cudaEventDisableTiming);
    if (status != cudaSuccess) return refuse(error, "an event cannot be made", status);
    for (int way = 0; way < HRT_IPC_WAYS; way++) {
        lane->end[way] = calloc((size_t)ipc->comm->size, sizeof *lane->end[way]);
        if (!lane->end[way]) return hrt_fail(error, "out of memory");
        if (!take_side(&lane->side[way], ipc->device, error)) return false;
    }
    return true;
}

static bool find(const char *name, hrt_ipc_value **to, struct hrt_error *error) {
    enum { VERSION = 12000 }; // The first one whose devices all have these operations.
    enum cudaDriverEntryPointQueryResult found;
    void *function = NULL;
    const cudaError_t status =
        cudaGetDriverEntryPointByVersion(name, &function, VERSION, cudaEnableDefault, &found);
    if (status != cudaSuccess) return refuse(error, name, status);
    if (found != cudaDriverEntryPointSuccess || !function)
        return hrt_fail(error,
                        "ranks cannot share memory of GPUs (HECATE_TRANSPORT=ipc): the "
                        "driver has no %s",
                        name);
    memcpy(to, &function, sizeof function);
    return true;
}

// A stream that waits for another rank stands in a queue of the GPU; another stream in the same queue would wait, too. CUDA
// makes 8 of them, unless it is asked for more before its first call.
__attribute__((constructor)) static void ask_for_queues(void) {
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
    setenv("CUDA_DEVICE_MAX_COPY_CONNECTIONS", "32", 0);
}

static bool has_queues(const char *variable, struct hrt_error *error) {
    enum { NEEDED = HRT_IPC_WAYS * HRT_IPC_LANES + 1 }; // The program's own stream.
    const char *text = getenv(variable);
    return !text || atoi(text) >= NEEDED ||
           hrt_fail_usage(error,
                          "%s is %s: ranks that share memory of GPUs (HECATE_TRANSPORT=ipc) "
                          "need %d queues, since streams wait for other ranks",
                          variable, text, NEEDED);
}

static bool take_inbox(struct hrt_ipc *ipc, size_t bytes, struct hrt_error *error) {
    char what[96];
    const cudaError_t status = cudaMalloc((void **)&ipc->inbox, bytes);
    if (status == cudaSuccess) return true;
    snprintf(what, sizeof what,
             "%zu MiB for messages cannot be taken (HECATE_IPC_PIECE=KIB, now %zu)", bytes >> 20,
             ipc->piece >> 10);
    return refuse(error, what, status);
}

bool hrt_ipc_take(struct hrt_ipc *ipc, struct hrt_error *error) {
    const char *piece = getenv("HECATE_IPC_PIECE");
    const int ranks = ipc->comm->size;
    ipc->piece = piece_of(piece);
    if (!ipc->piece)
        return hrt_fail_usage(error, "HECATE_IPC_PIECE is '%s'; it takes KiB of a piece, 1 to %d",
                              piece, HRT_IPC_PIECE >> 10);
    if (!has_queues("CUDA_DEVICE_MAX_CONNECTIONS", error) ||
        !has_queues("CUDA_DEVICE_MAX_COPY_CONNECTIONS", error) ||
        !find("cuStreamWaitValue32", &ipc->wait, error) ||
        !find("cuStreamWriteValue32", &ipc->write, error))
        return false;
    ipc->mapped = calloc((size_t)ranks, sizeof *ipc->mapped);
    if (!ipc->mapped) return hrt_fail(error, "out of memory");
    for (int i = 0; i < HRT_LANES; i++) {
        if (hrt_ipc_moves(i) && !take_lane(ipc, &ipc->lane[i], error)) return false;
    }
    if (ranks == 1) return true;
    return take_inbox(ipc, inbox_bytes(ipc->piece, ranks), error);
}

bool hrt_ipc_keep(struct hrt_ipc_events *events, cudaEvent_t event) {
    if (events->count == events->room) {
        const size_t room = events->room ? 2 * events->room : 16;
        cudaEvent_t *more = realloc(events->event, room * sizeof(cudaEvent_t));
        if (!more) return false;
        events->event = more;
        events->room = room;
    }
    events->event[events->count++] = event;
    return true;
}

// ---- meeting

static void compare_pieces(struct hrt_ipc *ipc, int64_t *all) {
    struct hrt_comm *comm = ipc->comm;
    char why[160];
    memset(all, 0, (size_t)comm->size * sizeof *all);
    all[comm->rank] = (int64_t)ipc->piece;
    hrt_net_comm_all_reduce(comm, all, comm->size, HRT_INT64);
    for (int r = 1; r < comm->size; r++) {
        if (all[r] == all[0]) continue;
        if (comm->rank > 0) hrt_net_comm_barrier(comm); // Rank 0 speaks, and ends all.
        snprintf(why, sizeof why, "HECATE_IPC_PIECE of ranks 0 and %d differ", r);
        hrt_net_executor_fail(comm, "its start", why);
    }
}

static int open_words(struct hrt_comm *comm, char name[32], size_t bytes) {
    int64_t key = 0;
    int file = -1;
    if (comm->rank == 0) {
        if (getrandom(&key, sizeof key, 0) != sizeof key)
            hrt_net_executor_fail(comm, "a name for memory", strerror(errno));
        key &= INT64_MAX;
    }
    for (int turn = 0; turn < 2; turn++) { // Rank 0 first.
        if (turn > 0) hrt_net_comm_all_reduce(comm, &key, 1, HRT_INT64);
        if ((turn == 0) != (comm->rank == 0)) continue;
        snprintf(name, 32, "/hecate-%016llx", (unsigned long long)key);
        file = shm_open(name, O_RDWR | O_CLOEXEC | (turn == 0 ? O_CREAT | O_EXCL : 0), 0600);
        if (file < 0 || (turn == 0 && ftruncate(file, (off_t)bytes) != 0)) {
            char why[160];
            snprintf(why, sizeof why, "/dev/shm%s: %s%s", name, strerror(errno),
                     turn > 0 ? "; ranks of one machine must share /dev/shm" : "");
            hrt_net_executor_fail(comm, "memory of the machine", why);
        }
    }
    return file;
}

// Nobody else needs the name once all have come: each rank takes it away before it can fail.
static void share_words(struct hrt_ipc *ipc) {
    struct hrt_comm *comm = ipc->comm;
    const size_t bytes = words_bytes(comm->size);
    char name[32];
    const int file = open_words(comm, name, bytes);
    void *words = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    hrt_net_comm_barrier(comm);
    shm_unlink(name);
    if (words == MAP_FAILED) hrt_net_executor_fail(comm, "memory of the machine", strerror(errno));
    ipc->words = words;
    hrt_ipc_check(comm, "memory of the machine",
                  cudaHostRegister(words, bytes, cudaHostRegisterMapped));
}

// Maps the memory of each other rank. Where a rank cannot, the lowest such rank speaks, and the others wait for it to end
// the job: memory of a rank that ends early could not be mapped by the others, which would speak, too.
static void open_inboxes(struct hrt_ipc *ipc, const cudaIpcMemHandle_t *handles, int64_t *all) {
    struct hrt_comm *comm = ipc->comm;
    cudaError_t status = cudaSuccess;
    char what[64];
    memset(all, 0, (size_t)comm->size * sizeof *all);
    for (int r = 0; r < comm->size && status == cudaSuccess; r++) {
        if (r == comm->rank) continue;
        snprintf(what, sizeof what, "mapping the memory of rank %d", r);
        status = cudaIpcOpenMemHandle((void **)&ipc->mapped[r], handles[r],
                                      cudaIpcMemLazyEnablePeerAccess);
    }
    all[comm->rank] = status != cudaSuccess;
    hrt_net_comm_all_reduce(comm, all, comm->size, HRT_INT64);
    for (int r = 0; r < comm->size; r++) {
        if (!all[r]) continue;
        if (r != comm->rank) hrt_net_comm_barrier(comm);
        hrt_ipc_check(comm, what, status);
    }
}

static void map_inboxes(struct hrt_ipc *ipc, int64_t *all) {
    enum { WORDS = sizeof(cudaIpcMemHandle_t) / sizeof *all };
    struct hrt_comm *comm = ipc->comm;
    cudaIpcMemHandle_t *handles = calloc((size_t)comm->size, sizeof *handles);
    if (!handles) hrt_net_executor_fail(comm, "its start", "out of memory");
    memset(all, 0, (size_t)comm->size * WORDS * sizeof *all);
    hrt_ipc_check(comm, "a handle of its memory",
                  cudaIpcGetMemHandle(&handles[comm->rank], ipc->inbox));
    memcpy(&all[comm->rank * WORDS], &handles[comm->rank], sizeof *handles);
    hrt_net_comm_all_reduce(comm, all, comm->size * (int64_t)WORDS, HRT_INT64);
    memcpy(handles, all, (size_t)comm->size * sizeof *handles);
    open_inboxes(ipc, handles, all);
    free(handles);
}

static void place_ends(struct hrt_ipc *ipc) {
    const int own = ipc->comm->rank, ranks = ipc->comm->size;
    void *seen = NULL;
    hrt_ipc_check(ipc->comm, "memory of the machine",
                  cudaHostGetDevicePointer(&seen, ipc->words, 0));
    for (int i = 0; i < HRT_LANES; i++) {
        for (int r = 0; hrt_ipc_moves(i) && r < ranks; r++) {
            const size_t first = number_of(i) * (size_t)(ranks * ranks);
            const size_t number[HRT_IPC_WAYS] = {
                [HRT_IPC_IN] = first + (size_t)(r * ranks + own),
                [HRT_IPC_OUT] = first + (size_t)(own * ranks + r),
            };
            if (r == own) continue;
            for (int way = 0; way < HRT_IPC_WAYS; way++) {
                struct hrt_ipc_end *end = &ipc->lane[i].end[way][r];
                end->words = &ipc->words[number[way]];
                end->device_words = (CUdeviceptr)seen + number[way] * sizeof(struct hrt_ipc_words);
            }
            ipc->lane[i].end[HRT_IPC_IN][r].place = ring_at(ipc, ipc->inbox, i, r, own);
            ipc->lane[i].end[HRT_IPC_OUT][r].place = ring_at(ipc, ipc->mapped[r], i, own, r);
        }
    }
}

void hrt_ipc_meet(struct hrt_ipc *ipc) {
    struct hrt_comm *comm = ipc->comm;
    ipc->joined = true;
    if (comm->size == 1) return;
    int64_t *all = calloc((size_t)comm->size, sizeof(cudaIpcMemHandle_t));
    if (!all) hrt_net_executor_fail(comm, "its start", "out of memory");
    compare_pieces(ipc, all);
    share_words(ipc);
    map_inboxes(ipc, all);
    place_ends(ipc);
    free(all);
    hrt_net_comm_barrier(comm); // A failure ends the job before anyone goes on.
}

// ---- parting

static void part_lane(struct hrt_ipc_lane *lane, int ranks) {
    for (int way = 0; way < HRT_IPC_WAYS; way++) {
        struct hrt_ipc_side *side = &lane->side[way];
        for (int i = 0; i < HRT_IPC_EVENTS; i++) {
            if (side->done[i]) cudaEventDestroy(side->done[i]);
        }
        for (size_t i = 0; i < side->step.count; i++) cudaEventDestroy(side->step.event[i]);
        free(side->step.event);
        if (side->work.stream) cudaStreamDestroy(side->work.stream);
        for (int r = 0; lane->end[way] && r < ranks; r++) free(lane->end[way][r].expected);
        free(lane->end[way]);
    }
    if (lane->begun) cudaEventDestroy(lane->begun);
}

// Memory that others may still copy from or to goes last.
void hrt_ipc_part(struct hrt_ipc *ipc) {
    const int ranks = ipc->comm->size;
    for (int i = 0; i < HRT_LANES; i++) {
        for (int way = 0; way < HRT_IPC_WAYS; way++) {
            if (ipc->lane[i].side[way].work.stream)
                cudaStreamSynchronize(ipc->lane[i].side[way].work.stream);
        }
    }
    if (ipc->joined) hrt_net_comm_barrier(ipc->comm);
    for (int r = 0; ipc->mapped && r < ranks; r++) {
        if (ipc->mapped[r]) cudaIpcCloseMemHandle(ipc->mapped[r]);
    }
    if (ipc->joined) hrt_net_comm_barrier(ipc->comm);
    for (int i = 0; i < HRT_LANES; i++) part_lane(&ipc->lane[i], ranks);
    if (ipc->words) {
        cudaHostUnregister(ipc->words);
        munmap(ipc->words, words_bytes(ranks));
    }
    free(ipc->mapped);
    cudaFree(ipc->inbox);
}
