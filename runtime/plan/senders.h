// senders.h: the number of segments that each holder of a chunk sends (inside the planner only).
#ifndef HECATE_RUNTIME_PLAN_SENDERS_H
#define HECATE_RUNTIME_PLAN_SENDERS_H

#include "runtime/plan/types.h"

// For each holder of the plan, in segments.
struct hpl_senders {
    int64_t *inside; // To holders of its own node.
    int64_t *across; // To other nodes.
};

// Divides the sending of every chunk among its holders so that the busiest device sends least.
//
// A condition on any gather that enters each node once: a node with k holders of a chunk needs
// (k - 1) * segments sends inside it, in the owner's node at least `segments` of them by the owner;
// q nodes need (q - 1) * segments sends across, at least `segments` of them from the owner's node.
// Conversely any such division can be turned into trees (schedule.c).
//
//   senders  arrays [holders of the plan], written
//   level    segments that the busiest device sends, as a fraction: a lower bound for any gather
enum hpl_status hpl_senders_divide(const struct hpl_topology *topology, const int32_t *owner,
                                   const struct hpl_plan *plan, int32_t segments,
                                   struct hpl_senders *senders, struct hpl_level *level,
                                   struct hpl_work *work);

#endif
