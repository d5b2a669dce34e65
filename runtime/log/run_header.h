// A log's description of its run, once: docs/log.md has every field.
#ifndef HECATE_RUNTIME_LOG_RUN_HEADER_H
#define HECATE_RUNTIME_LOG_RUN_HEADER_H

#include <stdint.h>

#include "runtime/train/trainer.h"

struct json_t;

struct hrt_log_run {
    const struct hrt_trainer *trainer;
    const char *instructions; // Instructions of the processor: "avx2".
    int threads;              // Threads of a rank.
    int64_t from;             // The step that it goes on behind.
    double peak;              // FLOP/s of a rank, measured; 0: not known.
};

// "fssdp", "ep", "replicate"; "none": of one rank.
const char *hrt_log_policy_of(const struct hrt_program *program);

// "fp32", "bf16", "fp64".
const char *hrt_log_precision_of(const struct hrt_program *program);

// The caller gives it back by json_decref; NULL: out of memory.
struct json_t *hrt_log_of_run(const struct hrt_log_run *run);

#endif
