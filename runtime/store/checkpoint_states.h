// Whose the optimizer's states in a checkpoint are. AdamW and Muon keep what they know of a parameter in the same
// places, and neither can go on with the other's: a momentum without a variance would be a step of thousands of
// learning rates.
//
// state.json says it: "muon" is a list of the parameters whose states are Muon's, {"path", "first", "stride", "layers"}
// each as struct hrt_param has them; all others' are AdamW's.
#ifndef HECATE_RUNTIME_STORE_CHECKPOINT_STATES_H
#define HECATE_RUNTIME_STORE_CHECKPOINT_STATES_H

#include <stdbool.h>

#include "runtime/base/error.h"
#include "runtime/params/state.h"
#include "runtime/params/tensor.h"

struct json_t;

// Notes in the facts whose the states are. False: out of memory.
bool hrt_store_states_note(struct json_t *facts, const struct hrt_state *state);

struct hrt_states {
    const struct hrt_state *state; // Borrowed, as the list is.
    const struct json_t *muon;     // NULL: all are AdamW's.
};

// The optimizer of the states in the checkpoint of these facts. False: it is of a version that does not tell Muon's
// from AdamW's.
bool hrt_store_states_read(struct hrt_states *states, const struct json_t *facts,
                           const struct hrt_state *state, struct hrt_error *error);

// Whether the states of a tensor are those of the optimizer that it has here. `states`: a struct hrt_states.
bool hrt_store_states_fit(const void *states, const struct hrt_tensor *tensor);

// Warns of those that do not, which begin anew, in one sentence that names `folder`.
void hrt_store_states_warn(const struct hrt_states *states, const char *folder);

#endif
