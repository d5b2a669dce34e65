// Back end `mpi`: how ranks meet, and MPI as what carries their messages.
#include "runtime/net/mpi.h"

#include <errno.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/world.h"
#include "runtime/net/mpi_notes.h"
#include "runtime/net/mpi_start.h"
#include "runtime/net/net.h"

struct wire {
    MPI_Comm messages, collectives; // Separate, so that tags never meet.
    struct hrt_mpi_notes *notes;    // NULL: MPI takes no calls of several threads.
};

static struct wire *wire_of(struct hrt_net *own) {
    return own->wire_own;
}

static _Noreturn void fail(struct hrt_net *own, int code, int peer, const char *what) {
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    MPI_Error_string(code, text, &length);
    hrt_net_fail(own, peer, what, text);
}

// ---- the transport

static void mpi_post(struct hrt_net *own, struct hrt_net_pieces *pieces,
                     const struct hrt_net_piece *piece, void *data) {
    const struct wire *wire = wire_of(own);
    MPI_Request *request = (MPI_Request *)pieces->request + pieces->count;
    const bool collective = piece->tag == HRT_NET_COLLECTIVE;
    const MPI_Comm comm = collective ? wire->collectives : wire->messages;
    const int tag = collective ? 0 : piece->tag;
    const bool send = piece->what == HRT_NET_SENT || piece->what == HRT_NET_GIVEN;
    const int code = send
                         ? MPI_Isend(data, piece->bytes, MPI_BYTE, piece->peer, tag, comm, request)
                         : MPI_Irecv(data, piece->bytes, MPI_BYTE, piece->peer, tag, comm, request);
    if (code != MPI_SUCCESS) fail(own, code, piece->peer, send ? "sending" : "receiving");
}

// The result of a piece that has finished; an error ends the job.
static int came_of(struct hrt_net *own, const struct hrt_net_piece *piece, MPI_Status *status,
                   bool errors) {
    const int error = errors ? status->MPI_ERROR : MPI_SUCCESS;
    int kind = MPI_SUCCESS, bytes = 0;
    if (error != MPI_SUCCESS && error != MPI_ERR_PENDING) MPI_Error_class(error, &kind);
    if (kind == MPI_ERR_TRUNCATE) return -1;
    if (kind != MPI_SUCCESS) fail(own, error, piece->peer, "exchanging data");
    if (piece->what == HRT_NET_RECEIVED) MPI_Get_count(status, MPI_BYTE, &bytes);
    return bytes;
}

static int mpi_test(struct hrt_net *own, struct hrt_net_pieces *pieces) {
    int finished = 0;
    MPI_Status *status = (MPI_Status *)pieces->status;
    const int code = MPI_Testsome(pieces->count, (MPI_Request *)pieces->request, &finished,
                                  pieces->finished, status);
    const bool errors = code == MPI_ERR_IN_STATUS;
    if (code != MPI_SUCCESS && !errors) fail(own, code, -1, "exchanging data");
    if (finished == MPI_UNDEFINED) return 0;
    for (int i = 0; i < finished; i++)
        pieces->came[i] = came_of(own, &pieces->of[pieces->finished[i]], &status[i], errors);
    return finished;
}

static bool mpi_tell(struct hrt_net *own, int peer, int kind, int32_t value) {
    bool told;
    const int code = hrt_net_mpi_notes_tell(wire_of(own)->notes, peer, kind, value, &told);
    if (code != MPI_SUCCESS) fail(own, code, peer, "a heartbeat");
    return told;
}

static bool mpi_told(struct hrt_net *own, int kind, int *peer, int32_t *value) {
    bool came;
    const int code = hrt_net_mpi_notes_told(wire_of(own)->notes, kind, peer, value, &came);
    if (code != MPI_SUCCESS) fail(own, code, *peer, "a heartbeat");
    return came;
}

static bool mpi_quiet(struct hrt_net *own) {
    return hrt_net_mpi_notes_quiet(wire_of(own)->notes);
}

static void mpi_abort(struct hrt_net *own, int exit_code) {
    (void)own;
    MPI_Abort(MPI_COMM_WORLD, exit_code);
}

static void mpi_close(struct hrt_net *own) {
    struct wire *wire = wire_of(own);
    hrt_net_mpi_notes_close(wire->notes);
    MPI_Comm_free(&wire->messages);
    MPI_Comm_free(&wire->collectives);
    free(wire);
    MPI_Finalize();
}

// ---- the start

// Ranks that met and could not join leave together: a launcher ends the others when one leaves, and the one with the
// error must print it before.
static void part(struct hrt_comm *comm) {
    (void)comm;
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
}

static void abort_apart(struct hrt_comm *comm, int exit_code) {
    (void)comm;
    fflush(NULL);
    MPI_Abort(MPI_COMM_WORLD, exit_code);
    _exit(exit_code);
}

// A launcher that MPI does not know starts every process as the only one.
static bool check_launcher(int size, struct hrt_error *error) {
    struct hrt_world world;
    if (!hrt_base_world_find(&world, error)) return false;
    if (!world.launcher || world.size == size) return true;
    return hrt_fail_usage(error,
                          "%s started %d ranks, but MPI sees %d: start with mpirun -n %d, or with "
                          "srun --mpi=pmix",
                          world.launcher, world.size, size, world.size);
}

// A lane has two tags, so they stay far below what MPI promises to allow.
static bool check_tags(struct hrt_error *error) {
    int *bound, known;
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &bound, &known);
    if (!known || *bound >= HRT_NET_COLLECTIVE - 1) return true;
    return hrt_fail(error, "this MPI allows tags up to %d only; %d are needed", *bound,
                    HRT_NET_COLLECTIVE - 1);
}

// The node of every rank: of those that share memory, numbered by their first rank.
static void find_nodes(int rank, int32_t *node_of, int size, int *nodes) {
    MPI_Comm machine;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &machine);
    int first = rank;
    MPI_Bcast(&first, 1, MPI_INT, 0, machine);
    MPI_Comm_free(&machine);
    MPI_Allgather(&first, 1, MPI_INT32_T, node_of, 1, MPI_INT32_T, MPI_COMM_WORLD);
    *nodes = 0;
    for (int r = 0; r < size; r++) node_of[r] = node_of[r] == r ? (*nodes)++ : node_of[node_of[r]];
}

// The first error on the lowest rank becomes the error of all, so that all leave together.
static bool agree(int launched, int size, bool sound, struct hrt_error *error) {
    const int own = sound ? size : launched;
    int first;
    MPI_Allreduce(&own, &first, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (first < size) MPI_Bcast(error, sizeof *error, MPI_BYTE, first, MPI_COMM_WORLD);
    return first == size;
}

// Communicators in the order of nodes, and the facts of the ranks.
static void open_wire(struct hrt_net *own, int launched) {
    struct wire *wire = wire_of(own);
    const int32_t node = own->node_of[launched];
    MPI_Comm_split(MPI_COMM_WORLD, 0, node * own->size + launched, &wire->collectives);
    MPI_Comm_set_errhandler(wire->collectives, MPI_ERRORS_RETURN);
    MPI_Comm_dup(wire->collectives, &wire->messages);
    MPI_Comm_rank(wire->collectives, &own->rank);
    MPI_Allgather(&node, 1, MPI_INT32_T, own->node_of, 1, MPI_INT32_T, wire->collectives);
    struct hrt_net_peer self;
    hrt_net_peer_self(&self, launched);
    MPI_Allgather(&self, sizeof self, MPI_BYTE, own->peer, sizeof self, MPI_BYTE,
                  wire->collectives);
    if (own->many_threads) wire->notes = hrt_net_mpi_notes_open(wire->collectives);
    if (own->many_threads && !wire->notes) hrt_net_fail(own, -1, "watching ranks", "out of memory");
}

static bool join(struct hrt_comm *comm, struct hrt_net *own, const char *topology,
                 struct hrt_error *error) {
    int launched, nodes;
    MPI_Comm_rank(MPI_COMM_WORLD, &launched);
    find_nodes(launched, own->node_of, own->size, &nodes);
    bool sound =
        hrt_net_read_settings(own, error) && check_launcher(own->size, error) && check_tags(error);
    if (sound && topology && launched == 0)
        sound = hrt_base_topology_read(topology, own->size, own->node_of, &nodes, error);
    if (!agree(launched, own->size, sound, error)) return false;
    MPI_Bcast(own->node_of, own->size, MPI_INT32_T, 0, MPI_COMM_WORLD);
    MPI_Bcast(&nodes, 1, MPI_INT, 0, MPI_COMM_WORLD);
    open_wire(own, launched);
    uint64_t key = (uint64_t)time(NULL) << 32 ^ (uint64_t)getpid() << 8 ^ (uint64_t)own->size;
    MPI_Bcast(&key, sizeof key, MPI_BYTE, 0, wire_of(own)->collectives);
    hrt_net_begin(own, comm, nodes, key);
    return true;
}

// Settings of Open MPI from measurements; a user's own setting stays. Shared memory: one copy through
// it is faster than the kernel's. TCP: messages of up to a piece leave at once, since the rendezvous
// of larger ones waits until both sides call MPI.
static void set_open_mpi(void) {
    // Its shared memory takes ranks with equal process numbers for one process, and crashes.
    if (hrt_net_is_apart()) setenv("OMPI_MCA_btl", "^vader", 0);
    setenv("OMPI_MCA_btl_vader_single_copy_mechanism", "none", 0);
    setenv("OMPI_MCA_btl_tcp_eager_limit", "2097152", 0);
    setenv("OMPI_MCA_btl_tcp_max_send_size", "2097152", 0);
    setenv("OMPI_MCA_btl_tcp_sndbuf", "2097152", 0);
    setenv("OMPI_MCA_btl_tcp_rcvbuf", "4194304", 0);
}

static bool start(struct hrt_comm *comm, const char *topology, struct hrt_error *error) {
    static const struct hrt_wire wire = {
        .request = sizeof(MPI_Request),
        .status = sizeof(MPI_Status),
        .post = mpi_post,
        .test = mpi_test,
        .tell = mpi_tell,
        .told = mpi_told,
        .quiet = mpi_quiet,
        .abort = mpi_abort,
        .close = mpi_close,
    };
    static const struct hrt_comm_ops met = {.abort = abort_apart, .close = part};
    int provided, size;
    set_open_mpi();
    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided) != MPI_SUCCESS)
        return hrt_fail(error, "MPI does not start");
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    struct hrt_net *own = hrt_net_reserve(&wire, size);
    if (own) own->wire_own = calloc(1, sizeof(struct wire));
    if (!own || !own->wire_own) {
        fprintf(stderr, "%s: error: out of memory for %d ranks\n", program_invocation_short_name,
                size);
        MPI_Abort(MPI_COMM_WORLD, HRT_EXIT_FAILED);
    }
    own->many_threads = provided == MPI_THREAD_MULTIPLE;
    if (join(comm, own, topology, error)) return true;
    free(own->wire_own);
    hrt_net_free(own);
    *comm = (struct hrt_comm){.ops = &met, .size = size};
    return false;
}

static bool open_mpi(struct hrt_comm *comm, const char *topology, struct hrt_error *error) {
    struct hrt_mpi_vigil vigil;
    struct hrt_error ignored = {0}; // hrt_net_read_settings tells.
    int patience = HRT_NET_PATIENCE;
    hrt_net_read_seconds("HECATE_COMM_PATIENCE", &patience, &ignored);
    hrt_net_mpi_vigil_begin(&vigil, patience);
    const bool started = start(comm, topology, error);
    hrt_net_mpi_vigil_end(&vigil);
    return started;
}

const struct hrt_comm_backend hrt_net_comm_mpi = {.name = "mpi", .open = open_mpi};
