// Opens the executor of transfers between the devices of the ranks.
#ifndef HECATE_RUNTIME_TRAIN_DEVICES_H
#define HECATE_RUNTIME_TRAIN_DEVICES_H

#include <stdbool.h>

#include "runtime/base/error.h"

struct hrt_state;

// Opens the executor that moves memory between the ranks' devices, and joins it: the program's own or, where ranks
// share a device, its executor for that. `opened`: whether this rank's device is open, else `error` says why. Nothing
// else to do in programs without an executor. Else collective: where a rank cannot, or nobody can serve ranks that
// share a device, all return false and error->shared is set.
bool hrt_train_devices_meet(struct hrt_state *state, bool opened, struct hrt_error *error);

#endif
