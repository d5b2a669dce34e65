// line: which line of the model a program's calls of kernels are of, for observers (observe.h). Else it
// is one branch. Emitted programs call it.
#ifndef HECATE_KERNELS_CPU_LINE_H
#define HECATE_KERNELS_CPU_LINE_H

#include <stdbool.h>

// A function's variable: `struct hk_lines lines HK_LINES_END = {0};`. When it ends its caller's line is back.
struct hk_lines {
    const char *outer; // The caller's.
    bool begun;
};
#define HK_LINES_END __attribute__((cleanup(hk_lines_end)))

extern _Thread_local const struct hk_observer *hk_observer_;
extern _Thread_local const char *hk_line_; // NULL: nobody has said.

void hk_line_begin(struct hk_lines *lines, const char *line);

// The calls that this thread makes from now on are of `line`, which is static: "tiny.moe:11".
static inline void hk_line(struct hk_lines *lines, const char *line) {
    if (__builtin_expect(hk_observer_ != 0, 0)) hk_line_begin(lines, line);
}

static inline void hk_lines_end(struct hk_lines *lines) {
    if (__builtin_expect(lines->begun, 0)) hk_line_ = lines->outer;
}

#endif
