// Back end `self`: a run of one rank. Messages to itself are copied when both sides are posted.
#include "runtime/comm/comm.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/comm/backend.h"
#include "runtime/comm/job.h"
#include "runtime/comm/world.h"

// Takes the oldest request with `tag` out of the list, or returns NULL.
static struct hrt_request *take(struct hrt_request **list, int tag) {
    for (; *list; list = &(*list)->next) {
        struct hrt_request *found = *list;
        if (found->tag != tag) continue;
        *list = found->next;
        return found;
    }
    return NULL;
}

static void append(struct hrt_request **list, struct hrt_request *request) {
    while (*list) list = &(*list)->next;
    *list = request;
}

static void deliver(struct hrt_request *send, struct hrt_request *recv) {
    assert(send->bytes == recv->bytes);
    if (send->bytes) memcpy(recv->data, send->data, send->bytes);
    send->done = recv->done = true;
}

static void self_isend(struct hrt_comm *comm, struct hrt_request *request) {
    struct hrt_request *recv = take(&comm->recvs, request->tag);
    if (recv) {
        deliver(request, recv);
    } else {
        append(&comm->sends, request);
    }
}

static void self_irecv(struct hrt_comm *comm, struct hrt_request *request) {
    struct hrt_request *send = take(&comm->sends, request->tag);
    if (send) {
        deliver(send, request);
    } else {
        append(&comm->recvs, request);
    }
}

static bool self_test(struct hrt_comm *comm, struct hrt_request *request) {
    (void)comm;
    return request->done;
}

// Nobody else has to do anything first, so that each turn gets it further.
static void self_start(struct hrt_comm *comm, struct hrt_job *job) {
    while (!job->advance(job, comm)) {
    }
    job->done = true;
}

static bool self_finished(struct hrt_comm *comm, struct hrt_job *job) {
    (void)comm;
    return job->done;
}

static void self_wait(struct hrt_comm *comm, struct hrt_job *job, const char *what) {
    (void)comm, (void)job, (void)what;
    assert(job->done);
}

static void self_all_to_all(struct hrt_comm *comm, void *recv, const void *send,
                            const struct hrt_exchange *exchange) {
    (void)comm;
    assert(exchange->send_bytes[0] == exchange->recv_bytes[0]);
    if (exchange->send_bytes[0] == 0) return;
    memcpy((char *)recv + exchange->recv_offset[0], (const char *)send + exchange->send_offset[0],
           exchange->send_bytes[0]);
}

// The sum over one rank is what it has.
static void self_all_reduce(struct hrt_comm *comm, void *data, int64_t count,
                            enum hrt_number type) {
    (void)comm, (void)data, (void)count, (void)type;
}

static void self_barrier(struct hrt_comm *comm) {
    (void)comm;
}

static void self_be_patient(struct hrt_comm *comm, bool patient) {
    (void)comm, (void)patient;
}

static void self_abort(struct hrt_comm *comm, int exit_code) {
    (void)comm;
    exit(exit_code);
}

static void self_close(struct hrt_comm *comm) {
    assert(!comm->sends && !comm->recvs); // Nobody may leave with a message under way.
}

void hrt_comm_open_self(struct hrt_comm *comm) {
    static const struct hrt_comm_ops ops = {
        .name = "self",
        .isend = self_isend,
        .irecv = self_irecv,
        .test = self_test,
        .start = self_start,
        .finished = self_finished,
        .wait = self_wait,
        .all_to_all = self_all_to_all,
        .all_reduce = self_all_reduce,
        .barrier = self_barrier,
        .be_patient = self_be_patient,
        .abort = self_abort,
        .close = self_close,
    };
    static const int32_t node_of[1] = {0};
    *comm = (struct hrt_comm){
        .ops = &ops, .rank = 0, .size = 1, .node = 0, .nodes = 1, .node_of = node_of};
}

static bool open_alone(struct hrt_comm *comm, const char *topology, struct hrt_error *error) {
    struct hrt_world world;
    int32_t node_of[1];
    int nodes;
    if (!hrt_world_find(&world, error)) return false;
    if (world.size > 1)
        return hrt_fail_usage(error,
                              "%s started %d ranks, but the program was compiled for one (see "
                              "cluster.nodes and cluster.devices)",
                              world.launcher, world.size);
    if (topology && !hrt_topology_read(topology, 1, node_of, &nodes, error)) return false;
    hrt_comm_open_self(comm);
    return true;
}

const struct hrt_comm_backend hrt_comm_self = {.name = "self", .open = open_alone};
