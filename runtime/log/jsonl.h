// The log for machines: one JSON object per step and line. docs/log.md has every field.
#ifndef HECATE_RUNTIME_LOG_JSONL_H
#define HECATE_RUNTIME_LOG_JSONL_H

#include <stdbool.h>
#include <stdio.h>

#include "runtime/base/error.h"
#include "runtime/train/load_counts.h"
#include "runtime/train/trainer.h"

struct json_t;

struct hrt_jsonl {
    FILE *file; // NULL: nothing is logged.
    const char *path;
    struct json_t *run; // Description for the next line; NULL: it has been written.
};

// Opens `path`, which may be a device or a pipe (hf_output), and of a file that is there keeps the first `kept` bytes;
// NULL: logs nothing.
bool hrt_log_jsonl_open(struct hrt_jsonl *log, const char *path, int64_t kept,
                        struct hrt_error *error);

// Bytes that the file has; -1: nothing is logged, or not into a file.
int64_t hrt_log_jsonl_bytes(const struct hrt_jsonl *log);

// The first line's description of its run (hrt_log_of_run); the log owns it.
void hrt_log_jsonl_begin(struct hrt_jsonl *log, struct json_t *run);

// Layers of a line, besides the numbers of its step; NULL: the line has none.
struct hrt_log_layers {
    const struct hrt_load_counts *routers; // How even they are, a few numbers a layer.
    const struct hrt_load_counts *loads;   // Tokens of each expert,
    const struct hrt_watch *watch;         // and their placement.
    const struct hrt_trainer *trainer;     // Counts the tokens read of each source of a mixture.
};

// Writes and flushes one line. On false the log is closed, and later steps are not logged.
bool hrt_log_jsonl_step(struct hrt_jsonl *log, const struct hrt_step_report *step,
                        const struct hrt_log_layers *layers, struct hrt_error *error);

// Closes the file; false when its last bytes could not be written.
bool hrt_log_jsonl_close(struct hrt_jsonl *log, struct hrt_error *error);

#endif
