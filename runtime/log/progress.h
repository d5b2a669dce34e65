// What a person watching sees: one line that is redrawn on a terminal, else a line every n steps.
#ifndef HECATE_RUNTIME_LOG_PROGRESS_H
#define HECATE_RUNTIME_LOG_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "runtime/program.h"
#include "runtime/train/trainer.h"

struct hrt_progress {
    FILE *out;
    bool terminal; // Redraw.
    int64_t steps, every;
    bool dirty;   // The cursor stands behind a line that may be redrawn.
    bool experts; // The program has experts: print their imbalance.
    double peak;  // FLOP/s of all ranks; 0: not known.
};

// `out` is a terminal when it is one and TERM is set to something other than "dumb".
void hrt_progress_start(struct hrt_progress *progress, FILE *out, int64_t steps, int64_t every,
                        bool experts);

// Shows a step. Steps that were evaluated, and the last, keep their line. False: errno says why it could not be written.
bool hrt_progress_step(struct hrt_progress *progress, const struct hrt_step_report *step);

// Ends a line that would be redrawn, before something else is printed.
void hrt_progress_end_line(struct hrt_progress *progress);

// "step 120/20000 | loss 3.2145 | aux 1.02 | gnorm 0.84 | lr 3.0e-04 | 812.3 ms | 5.16M tok/s |
// load 2.87", with " | val 3.31" when evaluated. Load: largest over mean tokens of an expert. Then, as far as 120 columns
// go: " | dev 1.04 | wait 12% | +14 | 2h13 | mfu 43% | 1.2GB": largest over mean rows of a rank, the share of time that
// ranks wait for others, replicas, time left, share of the peak, memory of the fullest rank.
void hrt_progress_format(char *line, size_t line_bytes, const struct hrt_progress *progress,
                         const struct hrt_step_report *step);

// Writes `number` with three digits and k, M or G: "5.16M".
void hrt_format_count(char *out, size_t out_bytes, double number);

#endif
