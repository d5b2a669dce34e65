// Whether the user asks for help. Static: each tool here is one file.
#ifndef HECATE_KERNELS_TUNE_HELP_H
#define HECATE_KERNELS_TUNE_HELP_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

// Prints `help` when the first argument is -h or --help.
static inline bool gives_help(int argc, char **argv, const char *help) {
    if (argc < 2 || (strcmp(argv[1], "-h") != 0 && strcmp(argv[1], "--help") != 0)) return false;
    fputs(help, stdout);
    return true;
}

#endif
