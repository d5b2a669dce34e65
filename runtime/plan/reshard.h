// reshard.h: heterogeneous sharding (the paper's algorithm 2, arXiv:2502.02581, section 4.3).
#ifndef HECATE_RUNTIME_PLAN_RESHARD_H
#define HECATE_RUNTIME_PLAN_RESHARD_H

#include "runtime/plan/types.h"

#ifdef __cplusplus
extern "C" {
#endif

// Owners for all chunks of all MoE layers at once.
//
// The t most loaded experts of a layer will have replicas wherever they are, so they may lie
// anywhere; the others are spread so that in every layer nodes, and devices in them, carry alike.
// Every device owns at most ceil(layers * experts / devices) chunks; of one layer 0 to all.
//
//   rows     [layers][experts] loads of the window, any scale
//   overlap  the overlap degree t
//   present  [layers][experts] owners now: a heavy expert stays where there is room
//   owner    [layers][experts] overwritten; may not overlap `present`
//
// Deterministic. HPL_BAD_ARGUMENT, HPL_NO_ROOM.
enum hpl_status hpl_reshard(const struct hpl_topology *topology, int32_t layers, int32_t experts,
                            const int64_t *rows, int32_t overlap, const int32_t *present,
                            int32_t *owner, struct hpl_work *work);

// New owners for chunks that have some: those of now, but for the few that have to change so that nodes and devices
// carry no more of a layer's light experts than hpl_reshard would give the fullest of them, or than an even part and
// `slack` thousandths of a mean device's (node's) rows of the layer, if that is more. Chunks change places two by two,
// or go where there is room; the most useful change comes first. Where no such change helps any more a layer stays
// above.
//
// Arguments as of hpl_reshard; slack >= 0. A device that owns more than its share of `present` gives chunks away.
// Called between optimizer steps only; chunks whose owner changes move with their states.
// Deterministic. HPL_BAD_ARGUMENT, HPL_NO_ROOM.
enum hpl_status hpl_reshard_near(const struct hpl_topology *topology, int32_t layers,
                                 int32_t experts, const int64_t *rows, int32_t overlap,
                                 int32_t slack, const int32_t *present, int32_t *owner,
                                 struct hpl_work *work);

// Bytes of workspace that either of them needs.
size_t hpl_reshard_work_bytes(int32_t layers, int32_t experts, int32_t devices, int32_t nodes);

#ifdef __cplusplus
}
#endif
#endif
