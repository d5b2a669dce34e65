// Counts the chunks that devices and nodes send and receive under a plan, by the collective that the policy uses.
#ifndef HECATE_PASSES_COST_CHUNKS_H
#define HECATE_PASSES_COST_CHUNKS_H

#include "passes/cost/stage.h"

// Counts of chunks. `sent` and `got` are those of a gather; its way back, the sum of gradients, swaps them. Copies that
// stay have only the sum; `sent` and `got` then count that.
struct hec_chunks {
    double *sent, *got;           // [devices]
    double *node_sent, *node_got; // [nodes] across
};

// Memory is the stage's.
struct hec_chunks hec_chunks_take(struct hec_stage *stage);

// Counts the chunks of `plan`, which a stage has made, with its owners. Where holders pass chunks on, their sending is
// taken to be spread over them evenly, as schedules do. Collectives over all devices, and sums over copies,
// move as few bytes as any can.
void hec_chunks_count(const struct hec_stage *stage, const struct hpl_plan *plan,
                      struct hec_chunks *chunks);

#endif
