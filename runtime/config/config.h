// The settings of a run (lang/settings.def), each with the value from the model file, --set or its option.
#ifndef HECATE_RUNTIME_CONFIG_CONFIG_H
#define HECATE_RUNTIME_CONFIG_CONFIG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "runtime/base/error.h"
#include "runtime/config/value.h"
#include "runtime/program.h"

// Words that a setting may be, in the order of its list: HRT_OPTIMIZER_muon.
#define HRT_COMMA ,
#include "lang/settings.def"
#define HRT_ENUM(word) HRT_OBJECTIVE_##word
enum hrt_objective { HEC_LIST_OBJECTIVE(HRT_ENUM, HRT_COMMA) };
#undef HRT_ENUM
#define HRT_ENUM(word) HRT_OPTIMIZER_##word
enum hrt_optimizer_kind { HEC_LIST_OPTIMIZER(HRT_ENUM, HRT_COMMA) };
#undef HRT_ENUM
#define HRT_ENUM(word) HRT_SCHEDULE_##word
enum hrt_schedule { HEC_LIST_SCHEDULE(HRT_ENUM, HRT_COMMA) };
#undef HRT_ENUM
#undef HRT_COMMA

// A field for each setting that programs read, by its key: train_steps. 0 stands for the word of a number (auto, none),
// NULL for a text that is not given; a word is its place in its list.
#define HRT_TYPE_COUNT(least, most) int64_t
#define HRT_TYPE_AUTO_COUNT(least, most) int64_t
#define HRT_TYPE_COUNT_OR(word, least, most) int64_t
#define HRT_TYPE_BYTES(least, most) int64_t
#define HRT_TYPE_NUMBER(least, most) double
#define HRT_TYPE_AUTO_NUMBER(least, most) double
#define HRT_TYPE_NUMBER_OR_NONE(least, most) double
#define HRT_TYPE_PAIR(least, most) __typeof__(double[2])
#define HRT_TYPE_PIECES const char *
#define HRT_TYPE_WORD(words) int
#define HRT_TYPE_TEXT_OR_NONE const char *
#define HRT_TYPE_TEXTS struct hrt_texts
#define HRT_FIELD_COMPILER(type, id)
#define HRT_FIELD_PROGRAM(type, id) HRT_TYPE_##type id;
#define HRT_FIELD_RUN(type, id) HRT_TYPE_##type id;
#define HRT_FIELD_RESUME(type, id) HRT_TYPE_##type id;
struct hrt_config {
#define HEC_SETTING(id, key, reader, type, ...) HRT_FIELD_##reader(type, id)
#include "lang/settings.def"
#undef HEC_SETTING
    uint64_t given; // Bit r: row r of the table was set by hrt_config_set.
};

struct hrt_setting_row {
    const char *key;
    struct hrt_value_rule rule;
    size_t offset;        // Into struct hrt_config.
    const char *fallback; // When the program does not say; "": unset.
    const char *of;       // Words of its parent for which it means something; NULL: all.
    const char *doc;
    bool fixed;   // Compiled in: no run sets it.
    bool differs; // A run that goes on from a checkpoint may have another value.
};

// The table of settings, ended by a row without key.
extern const struct hrt_setting_row hrt_config_rows[];

// Fills in `config` from the program's settings and the defaults.
bool hrt_config_init(struct hrt_config *config, const struct hrt_program *program,
                     struct hrt_error *error);

// Sets `key`; `name` is the user's spelling, for messages. A list of texts replaces the program's
// and grows from call to call; train.steps replaces the program's train.epochs;
// data.train also drops the program's data.val and data.teacher. A key that the program
// fixed when it was compiled, or an unknown one, is a usage error that says so.
bool hrt_config_set(struct hrt_config *config, const struct hrt_program *program, const char *key,
                    const char *value, const char *name, struct hrt_error *error);

// Whether a row means anything with the words that others have.
bool hrt_config_counts(const struct hrt_config *config, const struct hrt_setting_row *row);

// Whether the user set a row.
bool hrt_config_given(const struct hrt_config *config, const struct hrt_setting_row *row);

// The row in whose words a row's meaning lies: that of train.schedule for train.schedule.final.
const struct hrt_setting_row *hrt_config_parent(const struct hrt_setting_row *row);

// The value of a row as users write it; freed by the caller. NULL: out of memory.
char *hrt_config_text(const struct hrt_config *config, const struct hrt_setting_row *row);

// Prints every setting with its value in `config` and its meaning, then the fixed ones.
void hrt_config_print(FILE *out, const struct hrt_config *config,
                      const struct hrt_program *program);

#endif
