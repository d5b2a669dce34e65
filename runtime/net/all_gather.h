// Everybody learns a block of everybody, over a grid of ranks (runtime/plan/grid.h): of 1,024 ranks on 128 nodes each
// sends 14 messages, where telling all others directly takes 1,023.
//
// A rank of group g keeps blocks [inside][groups]: the row of those that have the same number in their groups, that of
// group (g + c) % groups in column c. So what it passes on is one range of its own row, and of the others' rows each is
// one message.
#ifndef HECATE_RUNTIME_NET_ALL_GATHER_H
#define HECATE_RUNTIME_NET_ALL_GATHER_H

#include "runtime/net/steps.h"
#include "runtime/plan/grid.h"

// Where `rank` keeps the block of rank `of`: a number of blocks.
size_t hrt_net_gathered_at(const struct hpl_grid *grid, int32_t rank, int32_t of);

// Clears the list and fills it in: blocks of `bytes`, the rank's own one in its place, become those of all ranks. At
// most 2 * ranks steps. The same bytes everywhere, in any order of arrival.
void hrt_net_steps_all_gather(struct hrt_steps *steps, const struct hpl_grid *grid, int32_t rank,
                              void *blocks, size_t bytes);

// The rounds of it alone: `row` [groups] of `bytes` become the blocks of the ranks of the same number, this one's, in
// column 0, being that of its group.
void hrt_net_steps_gather_across(struct hrt_steps *steps, const struct hpl_grid *grid, int32_t rank,
                                 void *row, size_t bytes);

#endif
