// The view of a person: one line that is redrawn on a terminal, else a line every n steps.
#ifndef HECATE_RUNTIME_LOG_PROGRESS_H
#define HECATE_RUNTIME_LOG_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "runtime/program.h"
#include "runtime/train/trainer.h"

struct hrt_progress {
    FILE *out;
    bool redraws; // One line, over and over.
    int64_t steps, every;
    double unseen; // Seconds of steps since the line was drawn.
    bool dirty;    // The cursor stands behind a line that may be redrawn.
    bool experts;  // The program has experts: print how routers use them.
    double peak;   // FLOP/s of all ranks; 0: not known.
    const struct hrt_data
        *data; // Borrowed: its sources have validation losses of their own. NULL: none has.
};

// A line is redrawn where `out` is a terminal, TERM is set to something other than "dumb", and `alone` says that
// no other process writes there.
void hrt_log_progress_start(struct hrt_progress *progress, FILE *out, int64_t steps, int64_t every,
                            bool experts, bool alone);

// Shows a step. The first, the last and those that were evaluated keep their line; others are drawn 20 times a
// second at most. False: errno says why it could not be written.
bool hrt_log_progress_step(struct hrt_progress *progress, const struct hrt_step_report *step);

// Ends a line that would be redrawn, before something else is printed.
void hrt_log_progress_end_line(struct hrt_progress *progress);

// The columns of a step, those first that matter most, up to the first that goes beyond `width` characters
// (0: no limit). docs/log.md explains them.
void hrt_log_progress_format(char *line, size_t line_bytes, size_t width,
                             const struct hrt_progress *progress,
                             const struct hrt_step_report *step);

// Writes `number` with three digits and k, M or G: "5.16M".
void hrt_log_format_count(char *out, size_t out_bytes, double number);

#endif
