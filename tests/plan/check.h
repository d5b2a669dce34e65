// check.h: proving that a schedule does what it should, without knowing how it was made, and bounds for any schedule.
#ifndef HECATE_TESTS_PLAN_CHECK_H
#define HECATE_TESTS_PLAN_CHECK_H

#include "runtime/plan/schedule.h"

enum hpl_fault {
    HPL_SOUND = 0,
    HPL_FAULT_RANGE,     // A transfer names an expert, segment or device that does not exist.
    HPL_FAULT_STRANGER,  // It uses a device that does not hold the chunk in the plan.
    HPL_FAULT_UNREADY,   // It reads what was not written yet, or was already given away.
    HPL_FAULT_REWRITTEN, // It writes a buffer a second time, or adds to a sum already sent.
    HPL_FAULT_ROUND, // Its round is before the last one's, or not behind that which brought what it reads.
    HPL_FAULT_MISSING, // At the end a holder lacks a segment, or the owner a partial gradient.
    HPL_FAULT_NO_ROOM, // The workspace is too small.
};

// Words for a fault, without a newline; static storage.
const char *hpl_fault_text(enum hpl_fault fault);

// Transfers of a schedule, counted by the checker.
struct hpl_traffic {
    int64_t *sent;     // [devices] segments, NULL if not wanted
    int64_t *received; // [devices] segments, NULL if not wanted
    int64_t cross;     // Segments that change node.
    int32_t transfer;  // On a fault: the transfer at which it shows, or -1.
};

// Both: rounds ascend, from 1 on.

// Proves that the list leads from the owners' placement to the plan: every transfer reads a segment
// that its sender has by then, of an earlier round, writes one that its receiver does not have yet, and in the end
// every holder has every segment. By induction over the list, every read is of the owner's data.
enum hpl_fault hpl_check_gather(const struct hpl_topology *topology, const int32_t *owner,
                                const struct hpl_plan *plan, const struct hpl_schedule *schedule,
                                struct hpl_traffic *traffic, struct hpl_work *work);

// Proves that the list adds every holder's partial gradient to the owner's exactly once: each
// device but the owner sends each segment once, receives none of it afterwards, and never sends to
// one that has already sent. Partial sums are then disjoint at all times, and only the owner's is
// left, with as many parts as there are holders. No device receives more than HPL_STAGED of a round.
enum hpl_fault hpl_check_reduce(const struct hpl_topology *topology, const int32_t *owner,
                                const struct hpl_plan *plan, const struct hpl_schedule *schedule,
                                struct hpl_traffic *traffic, struct hpl_work *work);

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

#endif
