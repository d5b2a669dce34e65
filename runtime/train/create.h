// The memory of a run, taken and given back.
#ifndef HECATE_RUNTIME_TRAIN_CREATE_H
#define HECATE_RUNTIME_TRAIN_CREATE_H

#include <stdbool.h>

#include "runtime/base/error.h"
#include "runtime/params/state.h"

// Reserves zeroed memory and binds the model. Pages are only taken when they are touched: a run
// that never computes gradients does not pay for them. `placement` and `comm` are borrowed until
// hrt_train_state_destroy. Programs of several ranks meet each other's devices: there it is collective, and fails on
// all ranks (error->shared) if on one. NULL: the program is of one rank.
bool hrt_train_state_create(struct hrt_state *state, struct hrt_placement *placement,
                            struct hrt_comm *comm, enum hrt_training training,
                            struct hrt_error *error);

// Gives all of it back, and closes the exchange of rows, moving experts and dense sums.
// A zeroed state may be destroyed.
void hrt_train_state_destroy(struct hrt_state *state);

#endif
