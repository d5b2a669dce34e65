// Transport: steps (steps.h) run on lanes, behind the computation.
//
// A lane is a queue. Every rank submits the same lists to a lane in the same order; one on which a rank has nothing
// to do it may leave out. Messages of a lane between two ranks keep that order, and those of different
// lanes pass each other: counts and rows never wait behind more than a few pieces of chunks.
//
// Bytes in flight are bounded: a rank sends another at most a window of bytes of each lane that have not been
// received there, and the rest when room is given back. So MPI never has to keep more than that.
//
// Adds and copies are run in the order of the list by the thread that turns the lane, and under no lock that submit,
// reached or join need. Same lists, same bits.
//
// Lists whose memory is that of a device with separate memory (steps->on_device) go to an executor of the device: it
// asks the device for all of a list at once, behind the work queued there before. Joining one lets the device
// wait, and not the host: work issued afterwards sees the received bytes.
//
//     mark = hrt_net_lane_submit(comm, HRT_LANE_GATHER, &steps);
//     ... compute ...
//     hrt_net_lane_join(comm, hrt_arrival(mark), "the gathering of experts");
#ifndef HECATE_RUNTIME_NET_TRANSPORT_H
#define HECATE_RUNTIME_NET_TRANSPORT_H

#include "runtime/net/comm.h"
#include "runtime/net/steps.h"

struct hrt_device;
struct hrt_error;

enum hrt_lane {
    HRT_LANE_COUNTS, // Counts of rows; waited for at once, as rows are.
    HRT_LANE_ROWS,
    HRT_LANE_GATHER, // Parameters of experts, ahead of their layer.
    HRT_LANE_ADDED,  // Those that the counts ask for besides.
    HRT_LANE_REDUCE, // Gradients of experts.
    HRT_LANE_DENSE,  // Dense sums, which every rank has.
    HRT_LANE_SAVE,   // Transfers between steps: new owners, files.
    HRT_LANES
};

// A place in a lane: all lists up to it are done. Number 0: always reached.
struct hrt_mark {
    enum hrt_lane lane;
    bool arrival;   // These lists have received all; their sends may still be read.
    bool on_device; // For lists whose memory is a device's.
    uint64_t number;
};

// Two ranks that have the same device: the first two.
struct hrt_sharing {
    int one, other;   // -1: every rank has a device of its own.
    char address[16]; // The GPU's address on their machine.
};

// An executor runs lists on a device. Every rank opens it, joins the others, and submits the same lists in the same
// order.
struct hrt_executor {
    const char *name; // "NCCL"
    // For an executor that stands for several: the one for these ranks, the same on all of them; NULL: none can serve
    // them, and `error` says why on one rank at least. Collective. NULL: this one serves all but ranks that share a
    // device.
    const struct hrt_executor *(*choose)(struct hrt_comm *comm, const struct hrt_sharing *sharing,
                                         struct hrt_error *error);
    // Takes its memory and streams on the rank's own device, and names itself in comm->executor.
    bool (*open)(struct hrt_comm *comm, struct hrt_device *device, struct hrt_error *error);
    // Meets the other ranks, once all of them have opened theirs. Collective; a failure ends the job.
    void (*join)(struct hrt_comm *comm);
    void (*submit)(struct hrt_comm *comm, enum hrt_lane lane, struct hrt_steps *steps);
    // Work that the device is asked for from now on waits for the mark.
    void (*order)(struct hrt_comm *comm, struct hrt_mark mark);
    void (*describe)(char *text, size_t bytes);
    // About how many bytes it takes of each device's memory: for people, before it is taken.
    size_t (*bytes)(int ranks);
    // Waits for all lists. Collective.
    void (*close)(struct hrt_comm *comm);
};

// For executors: a call that failed, and why. Prints it and ends the job.
_Noreturn void hrt_net_executor_fail(struct hrt_comm *comm, const char *what, const char *why);

// Hands a list, which stays the caller's, to a lane. Never waits, and returns the mark behind it. A list without
// steps and without `next` is done.
struct hrt_mark hrt_net_lane_submit(struct hrt_comm *comm, enum hrt_lane lane,
                                    struct hrt_steps *steps);

// The mark of a list's receives alone.
static inline struct hrt_mark hrt_arrival(struct hrt_mark mark) {
    mark.arrival = true;
    return mark;
}

// Whether a mark is reached. Neither waits nor moves anything.
bool hrt_net_lane_reached(struct hrt_comm *comm, struct hrt_mark mark);

// Returns when the mark is reached: the only place at which this rank waits for a lane. A lost peer ends the run
// as it does in collectives; `why`, which stays in place, names the wait in the message and in comm->wait, where it is
// counted.
void hrt_net_lane_join(struct hrt_comm *comm, struct hrt_mark mark, const char *why);

// Submits an exchange to a lane and joins it. `steps` has room for 2 * ranks. Collective.
void hrt_net_exchange_on(struct hrt_comm *comm, enum hrt_lane lane, struct hrt_steps *steps,
                         void *recv, const void *send, const struct hrt_exchange *exchange,
                         const char *why);

#endif
