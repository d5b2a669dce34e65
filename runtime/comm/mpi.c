// Back end `mpi`: opening, closing, and the collectives that move data.
#include "runtime/comm/mpi.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/comm/backend.h"
#include "runtime/comm/mpi_backend.h"
#include "runtime/comm/world.h"

enum { PATIENCE = 300 }; // Seconds, where HECATE_COMM_PATIENCE says nothing.

// Everybody tells everybody: a rank that waits knows for whom.
static void mpi_barrier(struct hrt_comm *comm) {
    struct hrt_mpi *own = comm->own;
    for (int i = 1; i < own->size; i++)
        hrt_mpi_start(own, false, (own->rank + own->size - i) % own->size, NULL, 0);
    for (int i = 1; i < own->size; i++)
        hrt_mpi_start(own, true, (own->rank + i) % own->size, NULL, 0);
    hrt_mpi_finish(own, "barrier");
}

static void mpi_be_patient(struct hrt_comm *comm, bool patient) {
    struct hrt_mpi *own = comm->own;
    if (own->patient && !patient) mpi_barrier(comm); // The slowest rank comes last.
    own->patient = patient;
}

static void mpi_abort(struct hrt_comm *comm, int exit_code) {
    (void)comm;
    fflush(NULL);
    MPI_Abort(MPI_COMM_WORLD, exit_code);
    _exit(exit_code);
}

static void release(struct hrt_mpi *own) {
    if (!own) return;
    hrt_mpi_pieces_free(&own->collective);
    hrt_mpi_lanes_free(own);
    free(own->peer);
    free(own->watch);
    free(own->node_of);
    free(own->scratch);
    free(own);
}

static void mpi_close(struct hrt_comm *comm) {
    struct hrt_mpi *own = comm->own;
    hrt_mpi_helper_stop(own);
    hrt_mpi_lanes_drain(own);
    hrt_mpi_heart_closing(own->heart);
    mpi_barrier(comm);
    hrt_mpi_heart_stop(own->heart);
    own->heart = NULL;
    hrt_mpi_peers_close(own);
    MPI_Comm_free(&own->messages);
    MPI_Comm_free(&own->collectives);
    release(own);
    MPI_Finalize();
}

// Of ranks that met and could not join: none leaves before all have come, so that launchers, which end
// the others when one does, let the one that says why do so.
static void mpi_part(struct hrt_comm *comm) {
    (void)comm;
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
}

// Reads a variable of seconds; one that is not set leaves them as they are.
static bool read_seconds(const char *variable, int *seconds, struct hrt_error *error) {
    const char *text = getenv(variable);
    if (!text || !*text) return true;
    char *end;
    const long number = strtol(text, &end, 10);
    if (*end || number < 1 || number > 1000000)
        return hrt_fail_usage(error, "%s is '%s'; it takes seconds, 1 to 1000000", variable, text);
    *seconds = (int)number;
    return true;
}

// Reads HECATE_COMM_TIMEOUT, HECATE_COMM_PATIENCE and HECATE_COMM_PROGRESS.
static bool read_settings(struct hrt_mpi *own, struct hrt_error *error) {
    const char *progress = getenv("HECATE_COMM_PROGRESS");
    own->timeout = 20;
    own->patience = PATIENCE;
    if (!read_seconds("HECATE_COMM_TIMEOUT", &own->timeout, error) ||
        !read_seconds("HECATE_COMM_PATIENCE", &own->patience, error))
        return false;
    const bool poll = progress && strcmp(progress, "poll") == 0;
    if (progress && *progress && !poll && strcmp(progress, "thread") != 0)
        return hrt_fail_usage(error, "HECATE_COMM_PROGRESS is '%s'; it takes thread or poll",
                              progress);
    int provided;
    MPI_Query_thread(&provided);
    own->threaded = !poll && provided == MPI_THREAD_MULTIPLE;
    return true;
}

// A launcher that MPI does not know starts every process as the only one.
static bool check_launcher(int size, struct hrt_error *error) {
    struct hrt_world world;
    if (!hrt_world_find(&world, error)) return false;
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
    if (!known || *bound >= 2 * HRT_LANES - 1) return true;
    return hrt_fail(error, "this MPI allows tags up to %d only; %d are needed", *bound,
                    2 * HRT_LANES - 1);
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

// What the first rank found wrong that did is everybody's error, so that all leave together.
static bool agree(int launched, int size, bool sound, struct hrt_error *error) {
    const int own = sound ? size : launched;
    int first;
    MPI_Allreduce(&own, &first, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (first < size) MPI_Bcast(error, sizeof *error, MPI_BYTE, first, MPI_COMM_WORLD);
    return first == size;
}

// Sets node_of by rank of MPI_COMM_WORLD; then joins the ranks in the order of nodes.
static bool join(struct hrt_comm *comm, struct hrt_mpi *own, const char *topology,
                 struct hrt_error *error) {
    int launched, nodes;
    MPI_Comm_rank(MPI_COMM_WORLD, &launched);
    find_nodes(launched, own->node_of, own->size, &nodes);
    bool sound = read_settings(own, error) && check_launcher(own->size, error) && check_tags(error);
    if (sound && topology && launched == 0)
        sound = hrt_topology_read(topology, own->size, own->node_of, &nodes, error);
    if (!agree(launched, own->size, sound, error)) return false;
    MPI_Bcast(own->node_of, own->size, MPI_INT32_T, 0, MPI_COMM_WORLD);
    MPI_Bcast(&nodes, 1, MPI_INT, 0, MPI_COMM_WORLD);

    const int32_t node = own->node_of[launched];
    MPI_Comm_split(MPI_COMM_WORLD, 0, node * own->size + launched, &own->collectives);
    MPI_Comm_set_errhandler(own->collectives, MPI_ERRORS_RETURN);
    MPI_Comm_dup(own->collectives, &own->messages);
    own->collective.comm = own->collectives;
    MPI_Comm_rank(own->collectives, &own->rank);
    MPI_Allgather(&node, 1, MPI_INT32_T, own->node_of, 1, MPI_INT32_T, own->collectives);
    comm->node = node;
    comm->nodes = nodes;
    comm->patience = own->patience;
    hrt_mpi_lanes_join(own);
    hrt_mpi_peers_open(own, launched);

    int machine = 0; // Ranks of this machine, whatever the topology says.
    for (int r = 0; r < own->size; r++)
        machine += hrt_mpi_same_machine(&own->peer[r], &own->peer[own->rank]);
    const bool crowded = machine >= sysconf(_SC_NPROCESSORS_ONLN);
    own->spins = crowded ? 10 : 2000;
    own->interval_ns = machine > sysconf(_SC_NPROCESSORS_ONLN) ? 1000000 : 200000;
    return true;
}

static struct hrt_mpi *reserve(int size) {
    struct hrt_mpi *own = calloc(1, sizeof *own);
    if (!own) return NULL;
    const size_t ranks = (size_t)size;
    own->size = size;
    own->peer = calloc(ranks, sizeof *own->peer);
    own->watch = calloc(ranks, sizeof *own->watch);
    own->node_of = calloc(ranks, sizeof *own->node_of);
    own->scratch = malloc(HRT_MPI_SCRATCH); // Committed where it is touched.
    atomic_init(&own->awaits, -1);
    own->collective.name = "a collective";
    if (hrt_mpi_lanes_open(own) && own->peer && own->watch && own->node_of && own->scratch)
        return own;
    release(own);
    return NULL;
}

// What measurements asked of Open MPI; a user's own setting stays. Shared memory: one copy through
// it is faster than the kernel's. TCP: messages of up to a piece leave at once, since the rendezvous
// of larger ones waits until both sides call MPI.
static void set_open_mpi(void) {
    // Its shared memory takes ranks with equal process numbers for one process, and crashes.
    if (hrt_mpi_is_apart()) setenv("OMPI_MCA_btl", "^vader", 0);
    setenv("OMPI_MCA_btl_vader_single_copy_mechanism", "none", 0);
    setenv("OMPI_MCA_btl_tcp_eager_limit", "2097152", 0);
    setenv("OMPI_MCA_btl_tcp_max_send_size", "2097152", 0);
    setenv("OMPI_MCA_btl_tcp_sndbuf", "2097152", 0);
    setenv("OMPI_MCA_btl_tcp_rcvbuf", "4194304", 0);
}

static bool start(struct hrt_comm *comm, const char *topology, struct hrt_error *error) {
    static const struct hrt_comm_ops ops = {
        .name = "mpi",
        .submit = hrt_mpi_submit,
        .reached = hrt_mpi_reached,
        .join = hrt_mpi_join,
        .all_reduce = hrt_mpi_all_reduce,
        .barrier = mpi_barrier,
        .be_patient = mpi_be_patient,
        .abort = mpi_abort,
        .close = mpi_close,
    };
    static const struct hrt_comm_ops met = {.name = "mpi", .abort = mpi_abort, .close = mpi_part};
    int provided, size;
    set_open_mpi();
    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided) != MPI_SUCCESS)
        return hrt_fail(error, "MPI does not start");
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    struct hrt_comm joined = {.ops = &ops, .size = size, .run = hrt_step_run};

    struct hrt_mpi *own = reserve(size);
    if (!own) {
        fprintf(stderr, "%s: error: out of memory for %d ranks\n", program_invocation_short_name,
                size);
        MPI_Abort(MPI_COMM_WORLD, HRT_EXIT_FAILED);
    }
    if (!join(&joined, own, topology, error)) {
        release(own);
        *comm = (struct hrt_comm){.ops = &met, .size = size};
        return false;
    }
    joined.own = own;
    joined.rank = own->rank;
    joined.node_of = own->node_of;
    *comm = joined;
    own->comm = comm;
    hrt_mpi_helper_start(own);
    own->heart = hrt_mpi_heart_start(own, own->timeout);
    return true;
}

static bool open_mpi(struct hrt_comm *comm, const char *topology, struct hrt_error *error) {
    struct hrt_mpi_vigil vigil;
    struct hrt_error ignored = {0}; // read_settings tells.
    int patience = PATIENCE;
    read_seconds("HECATE_COMM_PATIENCE", &patience, &ignored);
    hrt_mpi_vigil_begin(&vigil, patience);
    const bool started = start(comm, topology, error);
    hrt_mpi_vigil_end(&vigil);
    return started;
}

const struct hrt_comm_backend hrt_comm_mpi = {.name = "mpi", .open = open_mpi};
