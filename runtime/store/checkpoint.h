// Checkpoints of a run: everything that it needs to go on, for any number of ranks and any owners.
//
// A checkpoint is a folder DIR/step-N (docs/checkpoints.md):
//   parameters.R.safetensors, means.R.safetensors, variances.R.safetensors   the tensors that rank R wrote, whole, by
// name
//   loads.R.safetensors   what rank R's tokens asked for lately, where experts move
//   state.json    the step and all that is no tensor
//   index.json    written last: size and checksum of each file (part.h)
// Each rank writes the experts that it owns; ranks share out dense tensors.
#ifndef HECATE_RUNTIME_STORE_CHECKPOINT_H
#define HECATE_RUNTIME_STORE_CHECKPOINT_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/error.h"
#include "runtime/net/comm.h"
#include "runtime/params/placement.h"
#include "runtime/params/state.h"
#include "runtime/store/checkpoint_part.h"
#include "runtime/store/weights.h"

struct json_t;

// Where a run saves.
struct hrt_checkpoints {
    const char *dir;          // Borrowed. NULL: nowhere.
    int64_t keep, keep_every; // hrt_store_folder_prune
    struct hrt_copies
        *copies; // Borrowed: of tensors that change while a thread writes. NULL: none, steps wait.
    int lock;    // On rank 0; -1: none.
};

// A checkpoint that is being written. While there is one, code that changes the state's values asks state->snapshot.
struct hrt_saving;

// Begins to save step `step` of the state as it is now: a thread of each rank writes, without messages to the others.
// `facts` becomes state.json, of rank 0's, and is kept until then. `loads` becomes this rank's file of loads, and is
// freed; it has no data where there is none. The other pointers are borrowed. Tensors that change meanwhile, and slices
// of a device, are copied to checkpoints->copies. Collective, and all ranks agree on the result. A failure leaves
// nothing behind, *saving is NULL then, and it may be tried again.
bool hrt_store_checkpoint_begin(struct hrt_saving **saving,
                                const struct hrt_checkpoints *checkpoints, struct hrt_state *state,
                                int64_t step, struct json_t *facts, struct hrt_whole_file loads,
                                struct hrt_error *error);

// Whether this rank need not wait for its thread any more. Not collective.
bool hrt_store_checkpoint_is_written(const struct hrt_saving *saving);

// Waits for the threads, and makes the checkpoint visible. The folder keeps its contents until the new one is whole; a
// checkpoint that is too old is then removed. Collective, and all ranks agree on the result; a failure leaves nothing
// behind. Frees `saving` in either case.
bool hrt_store_checkpoint_finish(struct hrt_saving *saving, struct hrt_error *error);

// Ends it unfinished. Not collective. Nothing for NULL.
void hrt_store_checkpoint_abandon(struct hrt_saving *saving);

// A checkpoint whose files have all been read and are as they were written.
struct hrt_checkpoint {
    int64_t step; // 0: there is none.
    char folder[PATH_MAX];
    struct hrt_index index;
    struct json_t *facts; // Owned.
};

// Finds the newest sound checkpoint in `dir`, and warns of newer ones, in the name of `program`. None, and no error,
// where the folder has none; an error where none of them is sound. Collective. Free it in either case.
bool hrt_store_checkpoint_find(struct hrt_checkpoint *checkpoint, const char *dir,
                               const char *program, struct hrt_comm *comm, struct hrt_error *error);
void hrt_store_checkpoint_free(struct hrt_checkpoint *checkpoint);

// Reads the tensors of this rank: parameters and, in training, the optimizer's states.
bool hrt_store_checkpoint_load(const struct hrt_checkpoint *checkpoint, struct hrt_state *state,
                               struct hrt_error *error);

// Reads into `params` this rank's parameters alone from the checkpoint in `folder`, "DIR/step-N": as
// hrt_store_restore, with its files of parameters compared with their checksums first. Not collective.
bool hrt_store_checkpoint_load_parameters(const char *folder, const struct hrt_buffer *params,
                                          struct hrt_store_doubts *doubts, struct hrt_error *error);

#endif
