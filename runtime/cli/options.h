// The command line of a training program: commands and options come from one table, which also
// prints --help.
#ifndef HECATE_RUNTIME_CLI_OPTIONS_H
#define HECATE_RUNTIME_CLI_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "runtime/base/error.h"
#include "runtime/config/config.h"
#include "runtime/program.h"

enum hrt_command {
    HRT_TRAIN = 1,
    HRT_EVAL = 2,
    HRT_SAMPLE = 4,
    HRT_INFO = 8,
    HRT_LINKS = 16,
    HRT_EXPORT = 32,
}; // Bits.

struct hrt_arguments {
    enum hrt_command command; // 0: none given (only --help or --version).
    bool help, version, params, profile, strict, json, merge;
    struct hrt_config config;
    int64_t metrics; // A port; 0: not given.
    int64_t shard_bytes;
    int64_t threads; // 0: OMP_NUM_THREADS or all cores.
    int64_t check_grad, sample, samples, sequences, entries, tokens, topk;
    double temperature, topp, minp;
    const char *adapter, *like, *logits, *losses, *prompt, *save, *save_best, *to, *load, *route,
        *record_ids, *record_loads, *trace, *tensorboard, *pretend, *prompts, *tokenizer, *stop,
        *write_teacher;         // NULL: not given.
    const char *resume;         // A folder; empty: checkpoint.dir; NULL: not given.
    const char *resume_changed; // Keys, by commas; empty: all; NULL: not given.
};

// Parses argv. False: a usage error.
bool hrt_cli_options_parse(struct hrt_arguments *arguments, int argc, char **argv,
                           const struct hrt_program *program, struct hrt_error *error);

// Prints the help of one command, or (0) of the program.
void hrt_cli_options_help(FILE *out, const struct hrt_program *program, enum hrt_command command);

#endif
