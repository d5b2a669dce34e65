// Work in the background that takes more than one message: transfers that follow each other, data
// that is added where it arrives.
//
// A job is a small machine that somebody else turns. Once started, its `advance` is called again and
// again: by the helper thread of the back end while the caller computes, and by the caller wherever
// it waits (with HECATE_COMM_PROGRESS=poll only there: in hrt_comm_test, hrt_comm_wait and
// collectives). Jobs are turned one at a time, in the order started, under one lock.
//
//     struct sum { struct hrt_job job; ... };        // the job first, then what it needs
//     hrt_comm_start(comm, &sum->job);
//     ... compute ...
//     hrt_comm_wait(comm, &sum->job, "the sum of gradients");
#ifndef HECATE_RUNTIME_COMM_JOB_H
#define HECATE_RUNTIME_COMM_JOB_H

#include "runtime/comm/comm.h"

// Owned by the caller, who leaves it and what it uses in place until it has finished.
struct hrt_job {
    // Does what can be done now and returns true when nothing is left. It never waits: it posts and
    // tests messages (hrt_comm_isend, _irecv, _test), copies and adds. No other call of comm.h is
    // legal inside. Tags of jobs must not meet those of other messages between the same ranks.
    bool (*advance)(struct hrt_job *job, struct hrt_comm *comm);
    bool done;            // Set by the back end, under its lock: ask hrt_comm_finished.
    struct hrt_job *next; // Of the back end.
};

// Hands the job over; `advance` is called for the first time before this returns. Back end `self`
// turns it until it has finished.
void hrt_comm_start(struct hrt_comm *comm, struct hrt_job *job);

// Whether the job has finished: what it wrote may be read, and its memory is the caller's again.
// Does not wait and does not advance it.
bool hrt_comm_finished(struct hrt_comm *comm, struct hrt_job *job);

// Returns when the job has finished. A lost peer ends the run as it does in collectives; `what` names
// the wait in the message.
void hrt_comm_wait(struct hrt_comm *comm, struct hrt_job *job, const char *what);

#endif
