// What a run is told to do: the settings that a program may change without being compiled again,
// each with the value from the model file, from --set or from the option that stands for it.
#ifndef HECATE_RUNTIME_CONFIG_CONFIG_H
#define HECATE_RUNTIME_CONFIG_CONFIG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "runtime/base/error.h"
#include "runtime/config/value.h"
#include "runtime/program.h"

enum hrt_objective { HRT_NEXT_TOKEN, HRT_MASKED };
enum hrt_optimizer_kind { HRT_ADAMW, HRT_MUON };
enum hrt_lr_schedule { HRT_LR_COSINE, HRT_LR_LINEAR, HRT_LR_CONSTANT, HRT_LR_WSD };

struct hrt_config {
    const char *checkpoint_dir;      // NULL: none.
    int64_t checkpoint_every;        // Steps; 0: not by steps.
    double checkpoint_every_minutes; // 0: not by time.
    int64_t checkpoint_keep, checkpoint_keep_every;
    int64_t checkpoint_memory; // Bytes.
    int data_format;           // enum hrt_data_format
    struct hrt_texts data_train, data_val, data_teacher;
    double held_out; // Share of each training file; 0: as struct hrt_data_request has it.
    int64_t steps;
    int64_t group;  // Sequences that statistics cover; 0: an iteration.
    int64_t tokens; // Of one step; 0: one microbatch of every rank.
    int64_t seed;
    int64_t skip_max;                      // Steps in a row that may not be finite.
    int objective;                         // enum hrt_objective
    double mask_rate;                      // Share of tokens masked.
    int optimizer;                         // enum hrt_optimizer_kind
    double momentum, norm_eps;             // Of Muon.
    double lr, betas[2], eps, decay, clip; // clip 0: none.
    int lr_schedule;                       // enum hrt_lr_schedule
    int64_t warmup;                        // Steps.
    double final;                          // Learning rate at the end, as a share of lr.
    double falls;                          // Share of the steps in which wsd falls.
    int64_t eval_every,
        eval_steps; // Steps between evaluations (0: none but the last); steps' tokens in each (0: none).
    int64_t log_every, log_loads; // Steps between lines; between expert loads (0: none).
    const char *log_jsonl;        // NULL: none.
    uint64_t given;               // Bit r: row r of the table was set by hrt_config_set.
};

struct hrt_setting_row {
    const char *key;
    struct hrt_value_rule rule;
    size_t offset;        // Into struct hrt_config.
    const char *fallback; // When the program does not say; NULL: unset.
    const char *doc;
};

// The table of settings, ended by a row without key.
extern const struct hrt_setting_row hrt_setting_rows[];

// Fills in `config` from the program's settings and the defaults.
bool hrt_config_init(struct hrt_config *config, const struct hrt_program *program,
                     struct hrt_error *error);

// Sets `key`; `name` is what the user typed, for messages. A list of texts replaces the program's
// and grows from call to call; data.train also drops the program's data.val and data.teacher. A key that the program
// fixed when it was compiled, or an unknown one, is a usage error that says so.
bool hrt_config_set(struct hrt_config *config, const struct hrt_program *program, const char *key,
                    const char *value, const char *name, struct hrt_error *error);

// The value of a row as users write it; freed by the caller. NULL: out of memory.
char *hrt_config_text(const struct hrt_config *config, const struct hrt_setting_row *row);

// Prints every setting with its value in `config` and what it means, then the fixed ones.
void hrt_config_print(FILE *out, const struct hrt_config *config,
                      const struct hrt_program *program);

#endif
