// The facts that the ranks of a run must share: each of them is a process with a command line, an environment
// and files of its own, and one that was started differently would train something else.
//
// Rank 0's facts go to all ranks; each compares them with its own. Compared are
// - the program's file, by its content, and the instructions of its kernels (of other processors results
//   differ in the last bit, and copies of parameters drift apart),
// - the command line, but for --threads,
// - the variables that say how ranks talk and compute; HECATE_TOPOLOGY is rank 0's business, block sizes
//   and threads are every machine's own,
// - files that are read, by size and content.
// Contents are compared by checksum: of files of up to 16 MiB over all bytes; of more than that over 16 MiB
// in pieces of 4 KiB that lie evenly from the first byte to the last. Where data has several files they share the 16
// MiB, at least 8 KiB each. So starting takes as long for any amount of data, and single bytes that differ in large
// files are not found.
#ifndef HECATE_RUNTIME_CLI_SAME_H
#define HECATE_RUNTIME_CLI_SAME_H

#include <stdbool.h>

#include "runtime/cli/command.h"

enum { HRT_CONTENT_TEXT = 80 };

// Describes the compared content of a file, in words: "12 bytes and checksum ...". It is one of `files`, which share
// the bytes read. False: it cannot be read, which the text says then.
bool hrt_cli_content_text(char text[HRT_CONTENT_TEXT], int fd, int files);

// Whether all ranks were started alike; `argv` as main got it. Collective.
// False, on all ranks: the lowest that differs has the message, a usage error. Nothing to do on one rank.
bool hrt_cli_same_start(const struct hrt_run *run, int argc, char *const *argv,
                        struct hrt_error *error);

// Whether all ranks read the same files: `data` (NULL: none), --load, --pretend and those of --route. Collective.
// False, on all ranks: the lowest that differs has the message.
bool hrt_cli_same_files(const struct hrt_run *run, const struct hrt_data *data,
                        struct hrt_error *error);

#endif
