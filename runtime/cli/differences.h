// Differences between the run of a checkpoint and the one that resumes from it, as sentences: "train.seed was 1 there
// and is 2 here".
#ifndef HECATE_RUNTIME_CLI_DIFFERENCES_H
#define HECATE_RUNTIME_CLI_DIFFERENCES_H

#include <stdbool.h>
#include <stddef.h>

struct json_t;

// `list` is an array of sentences, which these add to. `there` may be NULL, or anything else that stood in a file.
//
// Compares settings by key. `whole`: a missing key was not set; else the checkpoint is of a version that did not note
// it.
void hrt_cli_differ_settings(struct json_t *list, const struct json_t *there,
                             const struct json_t *here, bool whole);

// Compares the parts of a model (struct hrt_program), by their names.
void hrt_cli_differ_parts(struct json_t *list, const struct json_t *there,
                          const struct json_t *here);

// Compares files by their descriptions, in order: "training file 2 was ...".
void hrt_cli_differ_files(struct json_t *list, const char *kind, const struct json_t *there,
                          const struct json_t *here);

// Whether one of `keys`, separated by commas, allows the difference: it is its setting, or one above it
// (train.optimizer); `data.train`, `data.teacher` of files, `route` of --route, `model` of all else.
bool hrt_cli_differ_allows(const char *keys, const char *difference);

// The first ones in `room` bytes, and how many more there are.
void hrt_cli_differences_text(const struct json_t *list, char *text, size_t room);

#endif
