// Help, arguments and the clock of the tools here. Static: each tool is one file.
#ifndef HECATE_KERNELS_TUNE_TOOL_H
#define HECATE_KERNELS_TUNE_TOOL_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

// Prints `help` when the first argument is -h or --help.
static inline bool gives_help(int argc, char **argv, const char *help) {
    if (argc < 2 || (strcmp(argv[1], "-h") != 0 && strcmp(argv[1], "--help") != 0)) return false;
    fputs(help, stdout);
    return true;
}

// Argument `i` as a number from `least` to `most`, `otherwise` where there is none, 0 when it is wrong.
static inline int number(int argc, char **argv, int i, int least, int most, int otherwise) {
    if (i >= argc) return otherwise;
    char *end;
    const long value = strtol(argv[i], &end, 10);
    return end == argv[i] || *end || value < least || value > most ? 0 : (int)value;
}

// Seconds of thread 0 alone, its processor time, which a busy machine does not add to; of several threads, of a
// monotonic clock.
static inline double now(int threads) {
    struct timespec t;
    clock_gettime(threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#endif
