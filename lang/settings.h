// The table of settings (settings.def): everything that sections of a .moe file, --set and --explain=settings know.
#ifndef HECATE_LANG_SETTINGS_H
#define HECATE_LANG_SETTINGS_H

#include <stdbool.h>
#include <stdio.h>

#include "lang/key.h"
#include "lang/tree.h"

// Readers of a setting: struct hrt_config has those of programs and runs.
enum hec_reader { HEC_READER_COMPILER, HEC_READER_PROGRAM, HEC_READER_RUN, HEC_READER_RESUME };

enum hec_setting_type {
    HEC_SETTING_COUNT,  // Whole number.
    HEC_SETTING_REAL,   // In the base unit of `measure`.
    HEC_SETTING_SWITCH, // true or false.
    HEC_SETTING_TEXT,   // "..."
    HEC_SETTING_CHOICE, // One of `values`; may be called with sub-settings: adamw(lr = 1e-3).
    HEC_SETTING_PAIR,   // [0.9, 0.95]
    HEC_SETTING_PIECES, // [warmup(100), cosine(to = 0.1)]
    HEC_SETTING_LABEL,  // Name behind a section's: `device h100 { ... }`.
};

enum {
    HEC_SETTING_AUTO = 1, // `auto` and `auto(a, b, c)` are allowed: the compiler chooses.
    HEC_SETTING_NONE = 2, // `none` is allowed; of a number it means 0.
    HEC_SETTING_UNIT = 4, // A count without a unit is of something else: its text keeps the unit.
};

struct hec_setting_row {
    const char *key;
    enum hec_reader reader;
    enum hec_setting_type type;
    int flags;
    enum hec_measure measure; // Unit that a number must have (counts may have HEC_BYTES, too).
    const char *values;       // Choices, separated by '|'; of a number, words in its place.
    const char *standard;     // Default, as text.
    double smallest, largest; // Bounds of a number; largest 0: no limit.
    int position;             // As an argument without a name of its parent: 1 is the first. Or 0.
    const char *of;           // Choices of the parent it belongs to, separated by '|'; NULL: all.
    const char *text;         // Its meaning, one line.
};

extern const struct hec_setting_row hec_setting_rows[HEC_KEYS];

// The row of `key`, or NULL.
const struct hec_setting_row *hec_setting_row(const char *key);

// Whether `word` is one of the words of `list`, which are separated by '|'. `list` may be NULL.
bool hec_setting_lists(const char *list, const char *word);

// A setting inside a moe; lang/check/moe_settings.c reads it.
struct hec_moe_row {
    const char *key; // "router.topk"
    const char *values;
    const char *standard;
    const char *text;
};

extern const struct hec_moe_row hec_moe_rows[];
extern const int hec_moe_rows_count;

// Prints both tables, with defaults, for --explain=settings.
void hec_settings_print(FILE *out);

#endif
