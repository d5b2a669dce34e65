// The output of an evaluation for each sequence, in safetensors that rank 0 writes: `logits` [sequences, positions,
// vocabulary], of the program's precision, and `losses` [sequences, positions], in double precision, the cross-entropy
// of each token, and behind it `losses.NAME` for each loss that the program has by name. A position without a target
// has the loss NaN. And the model's teacher entries (data/teacher.h) for all tokens of the one file that
// the validation data is: behind the sequences comes one more, the last tokens of the file, of which it has those that
// no sequence before it had.
#ifndef HECATE_RUNTIME_TRAIN_OUTPUTS_H
#define HECATE_RUNTIME_TRAIN_OUTPUTS_H

#include <stdbool.h>
#include <stdint.h>

#include "files/files.h"
#include "runtime/base/error.h"
#include "runtime/data/teacher.h"
#include "runtime/params/safetensors_write.h"
#include "runtime/params/state.h"
#include "runtime/train/entries.h"

struct hrt_output {
    const char *path; // Borrowed; NULL: not written.
    struct hf_replacement replacement;
    struct hrt_sink sink;
    int failed; // errno of the first write that failed; 0: none.
};

struct hrt_outputs {
    struct hrt_output logits, losses, teacher;
    struct hrt_teacher_file said; // The form of `teacher`, and of which tokens it is.
    bool of_targets;              // Its entries are those of the tokens that follow.
    void *entries;                // [rows] of it,
    struct hrt_entry *scratch;    // [rows, entries].
    int64_t sequences, done;      // In all, without the last one of `teacher`; that were added.
    int64_t header;               // Bytes of `losses` before its tensors.
    int64_t rows;                 // Positions that are moved at once.
    void *block;                  // [rows, vocabulary] as they are stored.
    void *values; // The same in the program's precision, from here or from another rank.
    double *loss; // [positions]
};

// Takes memory, and on rank 0 begins the files whose paths the fields `logits`, `losses` and `teacher` have; but for
// `said` the rest is zero. Files take their names when they are whole. Collective; all ranks say the same. False:
// `error`, and nothing is left.
bool hrt_train_outputs_open(struct hrt_outputs *outputs, const struct hrt_state *state,
                            int64_t sequences, struct hrt_error *error);

// Adds the `all` sequences of the last forward of all ranks: the first ones are rank 0's, as many as its batch holds,
// then come rank 1's. Collective. Failures are reported at the end.
void hrt_train_outputs_add(struct hrt_outputs *outputs, struct hrt_state *state, int64_t all);

// Ends the files; where they are not `whole` nothing is left of them. Collective. False: `error`, on all ranks, unless
// they are not whole.
bool hrt_train_outputs_close(struct hrt_outputs *outputs, const struct hrt_state *state, bool whole,
                             struct hrt_error *error);

#endif
