// Ranks that have met: how they begin, wait for each other, and part.
#include "runtime/net/net.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// A rank that waits knows for whom, and that one may wait itself.
static void net_barrier(struct hrt_comm *comm) {
    struct hrt_net *own = comm->own;
    hrt_net_tell_all(own, own->scratch, 1, "barrier");
}

static void net_be_patient(struct hrt_comm *comm, bool patient) {
    struct hrt_net *own = comm->own;
    if (own->patient && !patient) net_barrier(comm); // The slowest rank comes last.
    own->patient = patient;
}

static void net_abort(struct hrt_comm *comm, int exit_code) {
    struct hrt_net *own = comm->own;
    fflush(NULL);
    own->wire->abort(own, exit_code);
    _exit(exit_code);
}

static void net_close(struct hrt_comm *comm) {
    struct hrt_net *own = comm->own;
    hrt_net_helper_stop(own);
    hrt_net_lanes_drain(own);
    hrt_net_heart_closing(own->heart);
    net_barrier(comm);
    hrt_net_heart_stop(own->heart);
    own->heart = NULL;
    hrt_net_peers_close(own);
    own->wire->close(own);
    hrt_net_free(own);
}

bool hrt_net_read_seconds(const char *variable, int *seconds, struct hrt_error *error) {
    const char *text = getenv(variable);
    if (!text || !*text) return true;
    char *end;
    const long number = strtol(text, &end, 10);
    if (*end || number < 1 || number > 1000000)
        return hrt_fail_usage(error, "%s is '%s'; it takes seconds, 1 to 1000000", variable, text);
    *seconds = (int)number;
    return true;
}

bool hrt_net_read_settings(struct hrt_net *own, struct hrt_error *error) {
    const char *progress = getenv("HECATE_COMM_PROGRESS");
    own->timeout = 20;
    own->patience = HRT_NET_PATIENCE;
    if (!hrt_net_read_seconds("HECATE_COMM_TIMEOUT", &own->timeout, error) ||
        !hrt_net_read_seconds("HECATE_COMM_PATIENCE", &own->patience, error))
        return false;
    const bool poll = progress && strcmp(progress, "poll") == 0;
    if (progress && *progress && !poll && strcmp(progress, "thread") != 0)
        return hrt_fail_usage(error, "HECATE_COMM_PROGRESS is '%s'; it takes thread or poll",
                              progress);
    own->threaded = !poll && own->many_threads;
    return true;
}

void hrt_net_free(struct hrt_net *own) {
    hrt_net_pieces_free(&own->collective);
    hrt_net_lanes_free(own);
    free(own->peer);
    free(own->watch);
    free(own->node_of);
    free(own->machine_of);
    free(own->telling.step);
    free(own->scratch);
    free(own);
}

struct hrt_net *hrt_net_reserve(const struct hrt_wire *wire, int size) {
    struct hrt_net *own = calloc(1, sizeof *own);
    if (!own) return NULL;
    const size_t ranks = (size_t)size;
    own->wire = wire;
    own->size = size;
    own->peer = calloc(ranks, sizeof *own->peer);
    own->watch = calloc(ranks, sizeof *own->watch);
    own->node_of = calloc(ranks, sizeof *own->node_of);
    own->machine_of = calloc(ranks, sizeof *own->machine_of);
    own->scratch = malloc(HRT_NET_SCRATCH); // Committed where it is touched.
    atomic_init(&own->awaits, -1);
    own->collective.name = "a collective";
    if (hrt_net_lanes_open(own) && own->peer && own->watch && own->node_of && own->machine_of &&
        own->scratch)
        return own;
    hrt_net_free(own);
    return NULL;
}

static void open_grid(struct hrt_net *own, int nodes) {
    own->grid = hpl_grid_of(own->size, nodes, own->node_of);
    own->telling.room = 2 * hpl_grid_messages(&own->grid);
    own->telling.step = calloc((size_t)own->telling.room + 1, sizeof *own->telling.step);
    if (!own->telling.step) hrt_net_fail(own, -1, "telling ranks", "out of memory");
}

// The flag that ranks of this machine share.
static void open_flag(struct hrt_comm *comm, uint64_t key) {
    struct hrt_net *own = comm->own;
    int flag = hrt_net_flag_open(own, key, true);
    net_barrier(comm);
    if (flag < 0) flag = hrt_net_flag_open(own, key, false);
    net_barrier(comm);
    hrt_net_flag_forget(own, key);
    own->announced = hrt_net_flag_map(flag);
    if (!own->announced) hrt_net_fail(own, -1, "watching ranks", "out of memory");
}

// Finds machines by the peers' own facts, not by the topology.
static void find_machines(struct hrt_net *own) {
    for (int r = 0; r < own->size; r++) {
        int first = 0;
        while (!hrt_net_same_machine(&own->peer[first], &own->peer[r])) first++;
        own->machine_of[r] = first;
    }
}

void hrt_net_begin(struct hrt_net *own, struct hrt_comm *comm, int nodes, uint64_t key) {
    static const struct hrt_comm_ops ops = {
        .submit = hrt_net_submit,
        .reached = hrt_net_reached,
        .join = hrt_net_join,
        .all_reduce = hrt_net_all_reduce,
        .barrier = net_barrier,
        .be_patient = net_be_patient,
        .abort = net_abort,
        .close = net_close,
    };
    *comm = (struct hrt_comm){.ops = &ops,
                              .own = own,
                              .rank = own->rank,
                              .size = own->size,
                              .node = own->node_of[own->rank],
                              .nodes = nodes,
                              .node_of = own->node_of,
                              .machine_of = own->machine_of,
                              .patience = own->patience,
                              .run = hrt_net_step_run};
    own->comm = comm;
    open_grid(own, nodes);
    hrt_net_lanes_join(own);
    hrt_net_peers_open(own);
    find_machines(own);
    int machine = 0; // Ranks of this one.
    for (int r = 0; r < own->size; r++) machine += own->machine_of[r] == own->machine_of[own->rank];
    own->crowded = machine >= sysconf(_SC_NPROCESSORS_ONLN);
    own->spins = own->crowded ? 10 : 2000;
    own->interval_ns = machine > sysconf(_SC_NPROCESSORS_ONLN) ? 1000000 : 200000;
    open_flag(comm, key);
    hrt_net_helper_start(own);
    own->heart = hrt_net_heart_start(own, own->timeout);
}
