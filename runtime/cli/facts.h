// The facts of a run that a checkpoint has besides tensors (state.json): its progress and its identity.
//
//   step, sequences   steps taken, and sequences drawn: the next one has this number
//   skipped           how many of the last steps were skipped
//   best              step and loss of the best evaluation, and how many came since; where there was one
//   program, version  its name, and hecatec's
//   settings          that the learned parameters depend on, by key
//   model             the meaning of the program, by part (struct hrt_program)
//   data              size and checksum of each training file, in order
//   route             the value of --route, or the content of its file
//   records           of routing: the step before which each began, by path
//   files             the bytes of the log so far, by path
//   experts           for experts that move: the loads seen, and the owners (experts/history.h)
#ifndef HECATE_RUNTIME_CLI_FACTS_H
#define HECATE_RUNTIME_CLI_FACTS_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/error.h"
#include "runtime/cli/options.h"
#include "runtime/data/data.h"
#include "runtime/log/jsonl.h"
#include "runtime/program.h"
#include "runtime/train/trainer.h"

struct json_t;

// The facts after step `step`, of a run with this --route (NULL: none). The caller gives them back by json_decref;
// NULL: out of memory.
struct json_t *hrt_cli_facts(const struct hrt_trainer *trainer, const char *route, int64_t step);

// Differences between the run of the facts and the one that resumes, as sentences: an array that the caller gives back;
// NULL: out of memory. Older versions have fewer facts, and fewer are compared.
struct json_t *hrt_cli_facts_differ(const struct json_t *facts, const struct hrt_trainer *trainer,
                                    const char *route);

// Tells a trainer that is planned where the run of the facts has ended. False: they do not say.
bool hrt_cli_facts_go_on(const struct json_t *facts, struct hrt_trainer *trainer,
                         struct hrt_error *error);

// Notes how much of the log is there; and what was noted: 0 bytes of a file of another name.
void hrt_cli_facts_note_log(struct json_t *facts, const struct hrt_jsonl *log);
int64_t hrt_cli_facts_log(const struct json_t *facts, const char *path);

// Notes which records of routing there are; and the step before which a record began that the run of the facts has; -1:
// that has no record of this path. For a version that did not note them, an existing file has begun before step 1.
void hrt_cli_facts_note_records(struct json_t *facts, const struct hrt_arguments *arguments,
                                const struct hrt_route *route);
int64_t hrt_cli_facts_record(const struct json_t *facts, const char *path);

#endif
