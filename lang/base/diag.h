#ifndef HECATE_LANG_BASE_DIAG_H
#define HECATE_LANG_BASE_DIAG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "lang/base/arena.h"
#include "lang/base/source.h"
#include "lang/base/vec.h"

enum hec_severity { HEC_NOTE, HEC_WARNING, HEC_ERROR };
enum hec_colour { HEC_COLOUR_AUTO, HEC_COLOUR_ALWAYS, HEC_COLOUR_NEVER };

// Complaints of one compilation. They are collected, and printed by hec_diag_flush in the order of
// the source, each once. Zero-initialise, then set the first group.
struct hec_diag {
    FILE *out;
    enum hec_colour colour; // Auto: when `out` is a terminal and NO_COLOR is not set.
    uint32_t error_limit;   // Errors printed at most; 0: all.
    bool quiet;             // No warnings.
    bool strict;            // Warnings are errors.

    uint32_t errors; // Reported so far; the driver stops between stages when not zero.
    uint32_t warnings;
    uint32_t raised; // Errors, with those that were reported before: tells whether a step failed.

    struct hec_arena arena;
    HEC_VEC(struct hec_report *) reports;
    bool muted; // The last report was dropped: its notes go with it.
};

// Reports one complaint. The message names the fault and the value, starts in lower case
// and has no full stop. Never exits: the caller recovers. A HEC_NOTE belongs to the complaint
// before it; with a place in the source it shows it. Returns false, so that a check can end with
// `return hec_error(...)`.
bool hec_diag_report(struct hec_diag *diag, enum hec_severity severity, struct hec_span at,
                     const char *format, ...) __attribute__((format(printf, 4, 5)));

// Adds an indented line to the last complaint: a fact needed to understand it.
void hec_diag_detail(struct hec_diag *diag, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

// Shows under the caret of the last complaint the text that would repair it.
void hec_diag_fix(struct hec_diag *diag, const char *replacement);

// Prints everything reported since the last flush, and how many there were.
void hec_diag_flush(struct hec_diag *diag);

// Frees the collected complaints without printing them.
void hec_diag_free(struct hec_diag *diag);

#define HEC_NOWHERE ((struct hec_span){0})

#endif
