// schedule.h: the transfers of pieces of chunks between devices, in spAG and spRS.
//
// A schedule is data: a list of transfers in the order of their rounds, so that each may follow
// those before it. All transfers of a round may run at once, behind those of earlier ones. A
// chunk is cut into equal segments that travel on their own ways, so that a device forwards the segments
// that it has while the next one arrives. Executors may run transfers at the same time as long as
// each waits for the one that brought its segment (spAG), or for all that bring partial sums (spRS).
#ifndef HECATE_RUNTIME_PLAN_SCHEDULE_H
#define HECATE_RUNTIME_PLAN_SCHEDULE_H

#include "runtime/plan/policy.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { HPL_SEGMENTS_MAX = 64 };

struct hpl_transfer {
    int32_t expert;
    int32_t segment;
    int32_t from;
    int32_t to;
    int32_t round; // From 1: later than those of all transfers that it follows.
};

struct hpl_schedule {
    int32_t segments; // Pieces of each chunk.
    int32_t count;
    int32_t capacity; // Room in `transfer`; replicas * segments are needed.
    struct hpl_transfer *transfer;
};

// spAG: brings every chunk from its owner to all its holders in `plan`.
//
// Across the network a segment enters each node once; where from and through whom, inside nodes
// too, is chosen by a flow so that the device that sends most sends as little as possible. The same
// arguments give the same schedule.
//
//   owner     [plan->experts] must be among the plan's holders
//   segments  1 .. HPL_SEGMENTS_MAX
//
// HPL_BAD_ARGUMENT, HPL_NO_ROOM.
enum hpl_status hpl_schedule_gather(const struct hpl_topology *topology, const int32_t *owner,
                                    const struct hpl_plan *plan, int32_t segments,
                                    struct hpl_schedule *schedule, struct hpl_work *work);

// The gather of the policy's collective: the one above or, where it is DIRECT, one without forwarding, in which every
// holder gets its chunks from their owners. Same errors.
enum hpl_status hpl_schedule_of(const struct hpl_policy *policy,
                                const struct hpl_topology *topology, const int32_t *owner,
                                const struct hpl_plan *plan, int32_t segments,
                                struct hpl_schedule *schedule, struct hpl_work *work);

// spRS: the mirror of a gather. Every transfer is turned round and their order reversed: a device
// first adds what it receives, in the order of the list, to its own partial gradient, then sends
// the sum on. The order is fixed, so the owner's sum has the same bits in every run.
//
// In a round a device receives, and sends, at most HPL_STAGED segments (slots.h).
//
// HPL_NO_ROOM.
enum hpl_status hpl_schedule_mirror(const struct hpl_schedule *gather, struct hpl_schedule *reduce,
                                    struct hpl_work *work);

#ifdef __cplusplus
}
#endif
#endif
