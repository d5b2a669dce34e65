// What differs between the run of a checkpoint and the one that goes on from it, as sentences: "train.seed was 1 there and
// is 2 here".
#ifndef HECATE_RUNTIME_CLI_DIFFERENCES_H
#define HECATE_RUNTIME_CLI_DIFFERENCES_H

#include <stdbool.h>
#include <stddef.h>

struct json_t;

// `list` is an array of sentences, which these add to. `there` may be NULL, or anything else that stood in a file.
//
// Of settings by key. `whole`: what is not there was nothing; else the checkpoint is of a version that did not note it.
void hrt_differ_settings(struct json_t *list, const struct json_t *there, const struct json_t *here,
                         bool whole);

// Of the parts of a model (struct hrt_program), by their names.
void hrt_differ_parts(struct json_t *list, const struct json_t *there, const struct json_t *here);

// Of files, by what is said of each, in order: "training file 2 was ...".
void hrt_differ_files(struct json_t *list, const char *kind, const struct json_t *there,
                      const struct json_t *here);

// The first ones in `room` bytes, and how many more there are.
void hrt_differences_text(const struct json_t *list, char *text, size_t room);

#endif
