// Several ranks: tensors that each of them holds, and their sums.
//
// Parameters, gradients and the optimizer's states have the same places on every rank. Where ranks own
// experts, a rank only ever touches the chunks of its own: memory that is not touched is not taken.
#ifndef HECATE_RUNTIME_TRAIN_RANKS_H
#define HECATE_RUNTIME_TRAIN_RANKS_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/error.h"
#include "runtime/experts/experts.h"
#include "runtime/net/comm.h"
#include "runtime/params/state.h"
#include "runtime/program.h"

// Joins a state to the ranks of its program: creates the exchange of rows and of dense gradients, and points the
// model at the chunks that this rank holds. Nothing to do in programs of one rank. Collective.
bool hrt_train_ranks_join(struct hrt_state *state, struct hrt_error *error);

// Sums over ranks, in their order, the gradients of parameters that every rank has. Those of owned experts are
// whole already: their rows came from all ranks. Collective.
void hrt_train_ranks_sum_gradients(const struct hrt_state *state);

// Whether all ranks are `sound`; all of them call it. When some are not, all return false with the
// exit code of the lowest of those, and only that one keeps the text.
bool hrt_train_ranks_agree(struct hrt_comm *comm, bool sound, struct hrt_error *error);

// Bytes of the exchange of rows on each rank (replicas are hrt_experts_fssdp_bytes).
struct hrt_experts_bytes hrt_train_ranks_moving_bytes(const struct hrt_program *program);

// Memory of a process besides: its code, libraries, stack, and MPI with its buffers.
size_t hrt_train_ranks_process_bytes(const struct hrt_program *program);

// Chunks of all sets and layers.
int64_t hrt_train_ranks_chunks(const struct hrt_program *program);

#endif
