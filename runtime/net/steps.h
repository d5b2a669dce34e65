// Compiled transfers: the steps of one rank, in an order in which each may follow those before it.
// Pure: numbers and addresses in, steps out. Executors (transport.h) run them.
//
// Two ranks find their steps alike without talking: the k-th message that one sends to the other on a lane is the
// k-th that the other receives from it. So messages need no names beside their lane.
#ifndef HECATE_RUNTIME_NET_STEPS_H
#define HECATE_RUNTIME_NET_STEPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/net/comm.h"
#include "runtime/plan/schedule.h"
#include "runtime/plan/slots.h"

enum hrt_step_kind {
    HRT_SEND, // `from` to `peer`.
    HRT_RECV, // `to` from `peer`.
    HRT_COPY, // `from` to `to`.
    HRT_ADD,  // `from` added to `to`, element by element.
    // Between floats and numbers in bf16; `bytes` are those of the latter.
    HRT_NARROW,       // `from`, floats, rounded to `to`.
    HRT_WIDEN,        // `from`, in bf16, to `to`, floats.
    HRT_ADD_NARROW,   // The same, added.
    HRT_NARROW_PAIRS, // As HRT_NARROW, of rows in panels, an even number of them (kernels/types.h).
    HRT_SAME, // Compares `to`, received from `peer`, with `from`; if they differ, the ranks disagree.
};

struct hrt_step {
    enum hrt_step_kind kind;
    enum hrt_number type; // For an add.
    int32_t peer;
    int32_t round;    // The same for both sides of a message; later than that of all it waits for.
    int32_t after[2]; // Steps of this list that must be done first; -1: none.
    void *to;
    const void *from;
    size_t bytes; // Not 0.
    // For the executor.
    size_t posted;
    int32_t pieces;
    bool done;
};

// A list of steps. Owned by the caller, who leaves it and the memory that its steps name in place until it is done.
struct hrt_steps {
    struct hrt_step *step; // [room]
    int32_t count, room;
    bool on_device; // Its steps name memory of a device with separate memory.
    uint64_t
        hash; // Hash of all transfers, also between others: the same on every rank. 0: no other rank knows.

    // NULL, or called when all steps are done: clears the list and fills in further steps, or returns false when
    // there are none. Such a list is submitted empty. Called behind the computation, by the thread that turns the lane;
    // for steps on a device as soon as these have been asked for.
    bool (*next)(struct hrt_steps *steps);

    // Nanoseconds of hk_clock; read when it is done: when it was submitted, when all that send to this rank had
    // been heard of, and the end.
    int64_t begun, heard, ended;

    // For the executor.
    struct hrt_steps *later;
    uint64_t number;
    int32_t head, left, here,
        unheard; // Steps before `head` are done; left; of these not sends; not heard of.
    bool over;   // `next` has nothing more.
};

// Makes the list empty.
void hrt_net_steps_clear(struct hrt_steps *steps);

// Adds a step, or a message of at least one byte; returns its number. `after`: -1: nothing.
int32_t hrt_net_steps_append(struct hrt_steps *steps, const struct hrt_step *step);
int32_t hrt_net_steps_send(struct hrt_steps *steps, int32_t peer, const void *from, size_t bytes,
                           int32_t after);
int32_t hrt_net_steps_receive(struct hrt_steps *steps, int32_t peer, void *to, size_t bytes,
                              int32_t after);

// Runs a step that is no message and no comparison.
void hrt_net_step_run(const struct hrt_step *step);

// Bytes that one rank sends to and receives from each peer: sizes and offsets, `size` entries each.
struct hrt_exchange {
    const size_t *send_bytes, *send_offset, *recv_bytes, *recv_offset;
};

// The exchange between all ranks: receives, then sends, to the rank behind this one first, so that not all send to
// the same one. Takes at most 2 * ranks of the room; the list is cleared first.
void hrt_net_steps_exchange(struct hrt_steps *steps, const struct hrt_comm *comm, void *recv,
                            const void *send, const struct hrt_exchange *exchange);

// A transfer schedule, as this rank takes part: parameters that are received in place and passed on, or sums of
// gradients that are received beside, added, and passed on, in the order of the list.
struct hrt_carry {
    const struct hpl_schedule *schedule;
    int32_t rank, ranks, experts;
    int32_t pieces; // Pieces per expert; those from schedule->segments on travel with segment 0.
    bool adds;
    enum hrt_number type; // For sums.
    // Sums travel in bf16: the sender rounds what it sends, once, and the receiver adds it as a float. A sum of several
    // ranks that is passed on is rounded again. Type HRT_FLOAT.
    bool narrow;
    char *(*place)(const void *context, int32_t expert, int32_t piece, size_t *bytes);
    const void *context; // For `place`: where a piece of an expert lies on this rank.
    // For sums: HRT_STAGED times `staged` bytes, no piece being larger. Where they travel in bf16 half of it is for
    // pieces on their way to this rank, half for those that leave it.
    char *staging;
    size_t staged;
    int32_t *brought; // Scratch: [experts][pieces]
    uint64_t *
        heard; // Scratch: [ranks], in place until the list is done. NULL: the hash is not compared.
};

enum { HRT_STAGED = HPL_STAGED };

// Room of the list for `transfers` of this rank.
int64_t hrt_net_steps_room(int64_t transfers, int64_t ranks, bool adds);

// Clears the list and fills it in. Both ends of every message first tell each other the hash, so that ranks whose
// schedules differ find out before data moves; not where `heard` is NULL. Sets `received` and `crossed`: bytes to this
// rank, and of them from other nodes, when `node` [ranks] is not NULL.
struct hrt_carried {
    size_t received, crossed;
};
struct hrt_carried hrt_net_steps_carry(struct hrt_steps *steps, const struct hrt_carry *carry,
                                       const int32_t *node);

#endif
