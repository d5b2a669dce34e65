// The entries that a teacher's file (data/teacher.h) has for the logits of tokens.
#ifndef HECATE_RUNTIME_TRAIN_ENTRIES_H
#define HECATE_RUNTIME_TRAIN_ENTRIES_H

#include "runtime/data/teacher.h"
#include "runtime/program.h"

// Fills in the form of a file: as many entries as asked for, at most all tokens, and how they are stored.
// `of_targets`: of the tokens that follow alone, as a float.
void hrt_train_entries_form(struct hrt_teacher_file *file, const struct hrt_program *program,
                            int64_t entries, bool of_targets);

// Bytes of a token's entries.
int64_t hrt_train_entries_bytes(const struct hrt_teacher_file *file);

// A token that may become one.
struct hrt_entry {
    double logit;
    int32_t id;
};

// The likeliest tokens of `rows` rows of logits, [rows, vocabulary] of `precision`, the first of equals, likeliest
// first, and the logarithms of their probabilities among all tokens, in double precision until they are stored. With
// `targets` [rows] those alone instead; of a negative one there is none. `out`
// [rows] as files have them; `scratch` [rows, entries].
void hrt_train_entries_of(const struct hrt_teacher_file *file, const void *logits,
                          enum hrt_precision precision, int64_t rows, const int32_t *targets,
                          struct hrt_entry *scratch, void *out);

#endif
