// The ranks of a run, and how they talk. One interface; a back end fills in struct hrt_comm_ops.
//
// Collectives are called by every rank in the same order. A failure of the back end (a lost peer, a
// refused call) ends the whole job with one message through hrt_comm_abort, so nothing here returns
// an error.
#ifndef HECATE_RUNTIME_COMM_COMM_H
#define HECATE_RUNTIME_COMM_COMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum hrt_number { HRT_FLOAT, HRT_DOUBLE, HRT_INT64 };

// A message under way. Owned by the caller, who keeps it and the buffer in place until
// hrt_comm_test says that it is done.
struct hrt_request {
    bool done;
    int peer, tag;
    void *data;
    size_t bytes;
    struct hrt_request *next; // Of the back end.
    int pieces;               // Of the back end: parts of the message that are under way.
};

// What one rank sends to and receives from each peer: bytes and byte offsets, `size` entries each.
struct hrt_exchange {
    const size_t *send_bytes, *send_offset, *recv_bytes, *recv_offset;
};

struct hrt_comm;
struct hrt_job; // comm/job.h

struct hrt_comm_ops {
    const char *name; // "self"
    void (*isend)(struct hrt_comm *comm, struct hrt_request *request);
    void (*irecv)(struct hrt_comm *comm, struct hrt_request *request);
    bool (*test)(struct hrt_comm *comm, struct hrt_request *request);
    void (*start)(struct hrt_comm *comm, struct hrt_job *job);
    bool (*finished)(struct hrt_comm *comm, struct hrt_job *job);
    void (*wait)(struct hrt_comm *comm, struct hrt_job *job, const char *what);
    void (*all_to_all)(struct hrt_comm *comm, void *recv, const void *send,
                       const struct hrt_exchange *exchange);
    void (*all_reduce)(struct hrt_comm *comm, void *data, int64_t count, enum hrt_number type);
    void (*barrier)(struct hrt_comm *comm);
    void (*be_patient)(struct hrt_comm *comm, bool patient);
    void (*abort)(struct hrt_comm *comm, int exit_code); // Does not return.
    void (*close)(struct hrt_comm *comm);
};

struct hrt_comm {
    const struct hrt_comm_ops *ops;
    int rank, size;                    // This process, of how many.
    int node, nodes;                   // The machine it runs on, of how many.
    const int32_t *node_of;            // [size] Of every rank; the ranks of a node are consecutive.
    struct hrt_request *sends, *recvs; // Not yet matched (back ends that match themselves).
    void *own;                         // Of the back end.
};

// Starts to send `bytes` at `data` to rank `peer`, or to receive them from it. Messages between two
// ranks with one tag arrive in the order sent; both sides give the same number of bytes.
void hrt_comm_isend(struct hrt_comm *comm, struct hrt_request *request, int peer, int tag,
                    const void *data, size_t bytes);
void hrt_comm_irecv(struct hrt_comm *comm, struct hrt_request *request, int peer, int tag,
                    void *data, size_t bytes);

// Whether the message has been sent (received); lets the back end make progress.
bool hrt_comm_test(struct hrt_comm *comm, struct hrt_request *request);

// Sends send + send_offset[p] to every rank p and receives at recv + recv_offset[p].
void hrt_comm_all_to_all(struct hrt_comm *comm, void *recv, const void *send,
                         const struct hrt_exchange *exchange);

// data[i] becomes the sum over ranks, added in the order of ranks: every rank gets the same bits,
// and gets them again in every run.
void hrt_comm_all_reduce(struct hrt_comm *comm, void *data, int64_t count, enum hrt_number type);

// Returns when every rank has called it.
void hrt_comm_barrier(struct hrt_comm *comm);

// While patient, a rank waits for others as long as they live, since one of them may do what takes long: read or
// write a file. Else one that keeps others waiting for too long is lost. In the beginning it is not patient.
// Collective; the end of patience waits for all ranks.
void hrt_comm_be_patient(struct hrt_comm *comm, bool patient);

// Ends all ranks; this process with `exit_code`. The caller has printed why.
_Noreturn void hrt_comm_abort(struct hrt_comm *comm, int exit_code);

void hrt_comm_close(struct hrt_comm *comm);

// Back end `self`: one rank, which may send to itself.
void hrt_comm_open_self(struct hrt_comm *comm);

#endif
