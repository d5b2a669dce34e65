// The ranks of a run, and their sums of common values. All other transfers between them are transport's
// (net/transport.h). One interface; a back end fills in struct hrt_comm_ops.
//
// Collectives are called by every rank in the same order. A failure of the back end (a lost peer, a
// refused call) ends the whole job with one message through hrt_net_comm_abort, so nothing here returns
// an error.
#ifndef HECATE_RUNTIME_NET_COMM_H
#define HECATE_RUNTIME_NET_COMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/wait.h"

enum hrt_number { HRT_FLOAT, HRT_DOUBLE, HRT_INT64 };

struct hrt_comm;
struct hrt_executor; // net/transport.h
struct hrt_mark;     // net/transport.h
struct hrt_step;     // net/steps.h
struct hrt_steps;    // net/steps.h

struct hrt_comm_ops {
    void (*submit)(struct hrt_comm *comm, int lane, struct hrt_steps *steps);
    bool (*reached)(struct hrt_comm *comm, const struct hrt_mark *mark);
    void (*join)(struct hrt_comm *comm, const struct hrt_mark *mark, const char *why);
    void (*all_reduce)(struct hrt_comm *comm, void *data, int64_t count, enum hrt_number type);
    void (*barrier)(struct hrt_comm *comm);
    void (*be_patient)(struct hrt_comm *comm, bool patient);
    void (*abort)(struct hrt_comm *comm, int exit_code); // Does not return.
    void (*close)(struct hrt_comm *comm);
};

// The receiver of news about completed lists, in the thread that has completed them.
struct hrt_lists_watch {
    void (*ended)(void *context, int lane, const struct hrt_steps *steps);
    void *context;
};

enum { HRT_WAITS = 24 }; // Purposes; further ones are counted with the last one.

struct hrt_comm {
    const struct hrt_comm_ops *ops;
    int rank, size;            // This process, of how many.
    int node, nodes;           // The machine it runs on, of how many.
    const int32_t *node_of;    // [size] Of every rank; the ranks of a node are consecutive.
    const int32_t *machine_of; // [size] The first rank of every rank's machine, for any topology.
    void (*run)(const struct hrt_step *step); // Copies and adds of transport, hrt_net_step_run.
    struct hrt_wait wait[HRT_WAITS];          // Waits of hrt_net_lane_join, so far.
    bool patient;                             // hrt_net_comm_be_patient
    int patience; // Seconds that others may wait for a rank where nobody is patient; 0: for ever.
    void *own;    // Data of the back end.
    const struct hrt_lists_watch *lists; // NULL: nobody; set by __atomic_store_n.
    const struct hrt_executor *executor; // Executor of lists on a device; NULL: there are none.
    void *executor_own;
};

// data[i], i < count, becomes the sum over ranks, added in the order of ranks: every rank gets the same bits,
// and gets them again in every run. Collective.
void hrt_net_comm_all_reduce(struct hrt_comm *comm, void *data, int64_t count,
                             enum hrt_number type);

// Returns when every rank has called it. Collective.
void hrt_net_comm_barrier(struct hrt_comm *comm);

// While patient, a rank waits for others as long as they live, since one of them may do slow work: read or
// write a file. Else one that keeps others waiting for too long is lost. In the beginning it is not patient.
// Collective; the end of patience waits for all ranks.
void hrt_net_comm_be_patient(struct hrt_comm *comm, bool patient);

// Ends all ranks; this process with `exit_code`. The caller has printed why.
_Noreturn void hrt_net_comm_abort(struct hrt_comm *comm, int exit_code);

// Leaves the job and frees what the back end has taken; `comm` itself is the caller's. Collective.
void hrt_net_comm_close(struct hrt_comm *comm);

// This process among the ranks of its machine, in their order, from 0 on. Not collective.
int hrt_net_comm_local(const struct hrt_comm *comm);

// Opens back end `self`: one rank. The caller closes it.
void hrt_net_comm_open_self(struct hrt_comm *comm);

#endif
