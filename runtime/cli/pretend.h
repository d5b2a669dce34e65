// --pretend=FILE: kernels wait instead of computing (kernels/cpu/pretend.h).
#ifndef HECATE_RUNTIME_CLI_PRETEND_H
#define HECATE_RUNTIME_CLI_PRETEND_H

#include <stdbool.h>

#include "kernels/cpu/pretend.h"
#include "runtime/base/error.h"

// Reads the device to pretend to be: four lines, in any order, '#' starts a comment.
//     products  400e9   # FLOP/s of GEMMs
//     attention 400e9   # FLOP/s of attention
//     memory    6e9     # bytes/s
//     call      2e-5    # s, of every kernel
// False, with file and line: unreadable, a word that is none of these, one twice or not at all, a rate
// that is not positive or a time that is negative.
bool hrt_cli_pretend_read(struct hk_pretence *pretence, const char *path, struct hrt_error *error);

#endif
