// What a checkpoint says of a run besides tensors (state.json): how far it is, and what it is a run of.
//
//   step, sequences   steps taken, and sequences drawn: the next one has this number
//   program           its name
//   settings          that what is learned depends on, by key
//   data              size and checksum of each training file, in order
//   files             what has been written of the log, by path
//   experts           of experts that move: what has been seen, and who owns them (fssdp/history.h)
#ifndef HECATE_RUNTIME_CLI_FACTS_H
#define HECATE_RUNTIME_CLI_FACTS_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/error.h"
#include "runtime/cli/config.h"
#include "runtime/data/data.h"
#include "runtime/log/jsonl.h"
#include "runtime/program.h"
#include "runtime/train/trainer.h"

struct json_t;

// The facts after step `step`. The caller gives them back by json_decref; NULL: out of memory.
struct json_t *hrt_facts(const struct hrt_program *program, const struct hrt_trainer *trainer,
                         int64_t step);

// Whether the run that goes on is the one of the facts. Else `error` lists what differs.
bool hrt_facts_agree(const struct json_t *facts, const struct hrt_trainer *trainer,
                     struct hrt_error *error);

// Notes how much of the log is there; and what was noted: 0 bytes of a file of another name.
void hrt_facts_note_log(struct json_t *facts, const struct hrt_jsonl *log);
int64_t hrt_facts_log(const struct json_t *facts, const char *path);

#endif
