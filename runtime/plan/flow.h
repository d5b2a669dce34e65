// flow.h: divides rows over devices, as a flow with three distances (inside the planner only).
//
// Supplies are experts, sinks are devices; between them stand groups, the holders of one expert
// within one node. Rows that stay on their device are free, other rows inside the node cost NEAR,
// rows that change node cost FAR + NEAR, and FAR is worth more than any number of NEAR. Both costs
// are convex in the rows that pass (free up to the local rows, dear beyond), so a residual network with
// two prices for each arc is exact.
#ifndef HECATE_RUNTIME_PLAN_FLOW_H
#define HECATE_RUNTIME_PLAN_FLOW_H

#include "runtime/plan/work.h"

struct hpl_transport {
    int32_t experts, groups, devices;
    const int32_t *expert_group;  // [experts + 1] groups of an expert
    const int32_t *group_expert;  // [groups]
    const int32_t *group_holder;  // [groups + 1]  holders of a group
    const int32_t *holder_group;  // [holders]
    const int32_t *holder_device; // [holders]
    const int32_t *device_first;  // [devices + 1] into device_holder
    const int32_t *device_holder; // [holders]     holders on a device
    const int64_t *group_near;    // [groups]      rows that start in the group's node
    const int64_t *holder_near;   // [holders]     rows that start on the holder's device
    int64_t *left;                // [experts]     rows that no holder has taken yet
    int64_t *room;                // [devices]     rows a device can still take
    int64_t *share;               // [holders]     rows a holder takes
    int64_t *group_share;         // [groups]      their sum
    unsigned char *full; // [devices] set for those that prove the level; NULL if not wanted
    bool plain;          // Distances are ignored: any flow will do.
    int64_t steps;       // Arcs looked at so far.

    // The search: one entry for each expert, group and device, in this order.
    int32_t *distance; // Potentials; true distances where a shortest path may lead.
    int32_t *reach;    // In the present search, beyond the potentials.
    int32_t *pool;
    int32_t *arc;   // Next arc to try.
    int32_t *queue; // A stack.
    int32_t *path;
    bool *seen; // In this round of the search, depth first.
};

// Takes the search's arrays and those of the flow that `t` does not yet have.
bool hpl_transport_take(struct hpl_transport *t, struct hpl_work *work);

// Finds the least level, not below the one given, at which all rows can be taken, and shares of
// least cost at it (any shares when `plain`).
//
//   speed  [devices]
//   rows   [experts] supplies; every expert with rows must have a holder
//   level  in: where to begin. out: proven by a set of experts and the devices they can reach,
//          unless it is the one given
void hpl_transport_solve(struct hpl_transport *t, const int32_t *speed, const int64_t *rows,
                         struct hpl_level *level);

#endif
