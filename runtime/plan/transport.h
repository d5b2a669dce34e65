// transport.h: who computes how many rows, as a flow with three distances (inside the planner only).
//
// Supplies are experts, sinks are devices; between them stand groups, the holders of one expert
// within one node. Rows that stay on their device are free, other rows inside the node cost NEAR,
// rows that change node cost FAR + NEAR, and FAR is worth more than any number of NEAR. Both costs
// are convex in what passes (free up to what is there, dear beyond), so a residual network with
// two prices for each arc is exact.
#ifndef HECATE_RUNTIME_PLAN_TRANSPORT_H
#define HECATE_RUNTIME_PLAN_TRANSPORT_H

#include "runtime/plan/work.h"

struct hpl_transport {
    int32_t experts, groups, devices, holders;
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
    bool plain;                   // Distances are ignored: any flow will do.

    // The search: one entry for each expert, group and device, in this order.
    int32_t *distance;
    int32_t *arc;   // Next arc to try.
    int32_t *queue; // Circular.
    int32_t *path;
    unsigned char *seen;
};

// Takes the search's arrays and those of the flow that `t` does not yet have.
bool hpl_transport_take(struct hpl_transport *t, struct hpl_work *work);

// Gives every device the rows that start there and need not move, as far as its room goes.
void hpl_transport_keep_local(struct hpl_transport *t);

// Sends what is left at least cost. Returns true when nothing is left; otherwise `distance` is
// finite exactly for the experts and devices of a set whose supply exceeds its room: a proof.
bool hpl_transport_run(struct hpl_transport *t);

// Whether the last run reached an expert or a device.
bool hpl_transport_cut_expert(const struct hpl_transport *t, int32_t expert);
bool hpl_transport_cut_device(const struct hpl_transport *t, int32_t device);

#endif
