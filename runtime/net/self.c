// Back end `self`: a run of one rank, which sends nothing: steps are copies and run when they are submitted.
#include "runtime/net/comm.h"

#include <stdlib.h>

#include "runtime/base/world.h"
#include "runtime/net/backend.h"
#include "runtime/net/transport.h"

// Nobody else has to do anything first.
static void self_submit(struct hrt_comm *comm, int lane, struct hrt_steps *steps) {
    (void)lane;
    do {
        for (int32_t i = 0; i < steps->count; i++) comm->run(&steps->step[i]);
    } while (steps->next && steps->next(steps));
    steps->number = 1;
}

static bool self_reached(struct hrt_comm *comm, const struct hrt_mark *mark) {
    (void)comm, (void)mark;
    return true;
}

static void self_join(struct hrt_comm *comm, const struct hrt_mark *mark, const char *why) {
    (void)comm, (void)mark, (void)why;
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
    (void)comm;
}

void hrt_net_comm_open_self(struct hrt_comm *comm) {
    static const struct hrt_comm_ops ops = {
        .submit = self_submit,
        .reached = self_reached,
        .join = self_join,
        .all_reduce = self_all_reduce,
        .barrier = self_barrier,
        .be_patient = self_be_patient,
        .abort = self_abort,
        .close = self_close,
    };
    static const int32_t node_of[1] = {0};
    *comm = (struct hrt_comm){.ops = &ops,
                              .rank = 0,
                              .size = 1,
                              .node = 0,
                              .nodes = 1,
                              .node_of = node_of,
                              .machine_of = node_of,
                              .run = hrt_net_step_run};
}

static bool open_alone(struct hrt_comm *comm, const char *topology, struct hrt_error *error) {
    struct hrt_world world;
    int32_t node_of[1];
    int nodes;
    if (!hrt_base_world_find(&world, error)) return false;
    if (world.size > 1)
        return hrt_fail_usage(error,
                              "%s started %d ranks, but the program was compiled for one (see "
                              "cluster.nodes and cluster.devices)",
                              world.launcher, world.size);
    if (topology && !hrt_base_topology_read(topology, 1, node_of, &nodes, error)) return false;
    hrt_net_comm_open_self(comm);
    return true;
}

const struct hrt_comm_backend hrt_net_comm_self = {.name = "self", .open = open_alone};
