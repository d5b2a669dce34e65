// schedule.h: who sends which piece of which chunk to whom, in spAG and spRS.
//
// A schedule is data: a list of transfers in the order of their rounds, so that each may follow
// those before it. All transfers of a round may run at once, behind those of earlier ones. A
// chunk is cut into equal segments that travel on their own ways, so that a device forwards what
// it has while the next segment arrives. Executors may run transfers at the same time as long as
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
// In a round a device receives at most HPL_STAGED segments (slots.h).
//
// HPL_NO_ROOM.
enum hpl_status hpl_schedule_mirror(const struct hpl_schedule *gather, struct hpl_schedule *reduce,
                                    struct hpl_work *work);

// Least possible traffic of a gather from the owners to the plan.
struct hpl_schedule_bound {
    int64_t cross_chunks; // Chunks across nodes: one for each node that must get a chunk.
    int64_t busiest;      // 1 / HPL_BOUND_PARTS chunks that some device must send, or receive.
};

// A number that many counts divide, so that a bound in its parts loses little to rounding.
enum { HPL_BOUND_PARTS = 840 };

// No schedule that crosses the network as little as possible can keep all devices below `busiest`:
// by flow, over all ways to divide the sending of a chunk among its holders.
enum hpl_status hpl_schedule_bound(const struct hpl_topology *topology, const int32_t *owner,
                                   const struct hpl_plan *plan, struct hpl_schedule_bound *bound,
                                   struct hpl_work *work);

#ifdef __cplusplus
}
#endif
#endif
