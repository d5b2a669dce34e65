// A file of logits: one tensor, `logits` [sequences, positions, vocabulary], of the program's precision, in safetensors.
#ifndef HECATE_RUNTIME_TRAIN_LOGITS_H
#define HECATE_RUNTIME_TRAIN_LOGITS_H

#include <stdbool.h>
#include <stdint.h>

#include "files/files.h"
#include "runtime/base/error.h"
#include "runtime/params/safetensors_write.h"
#include "runtime/train/state.h"

struct hrt_logits {
    const char *path; // Borrowed.
    struct hf_replacement replacement;
    struct hrt_sink sink;
    int failed; // errno of the first write that failed; 0: none.
};

// Begins the file, which takes its name when it is whole. False: it cannot be written.
bool hrt_logits_open(struct hrt_logits *logits, const char *path, const struct hrt_program *program,
                     int64_t sequences, struct hrt_error *error);

// Adds those of the `batch` sequences of the last forward. What fails is told at the end.
void hrt_logits_add(struct hrt_logits *logits, struct hrt_state *state, int64_t batch);

// Ends the file; where it is not `whole` nothing is left of it. False: `error`, unless it is not whole.
bool hrt_logits_close(struct hrt_logits *logits, bool whole, struct hrt_error *error);

#endif
