// options.h: the command line of hecate-replay.
#ifndef HECATE_TOOLS_REPLAY_OPTIONS_H
#define HECATE_TOOLS_REPLAY_OPTIONS_H

#include "runtime/plan/loads/synthesize.h"
#include "tools/replay/replay.h"

enum { POLICIES_MAX = 32 };

struct options {
    const char *path;       // Loads to replay.
    const char *synthesize; // Loads to write instead.
    const char *json;       // Where to write the JSON report; "-" is standard output.
    const char *csv;        // Where to write every sample.
    const char *picture;    // Where to write the SVG.
    const struct hpl_policy *policies[POLICIES_MAX];
    int32_t policy_count;
    struct setting setting;
    struct synthesis synthesis;
    // Memory of the topology.
    int32_t first[HPL_DEVICES_MAX + 1], node[HPL_DEVICES_MAX], speed[HPL_DEVICES_MAX];
};

// Reads the command line into `options`, or prints its fault and exits with
// REPLAY_BAD_COMMAND. --help and --list-policies print and exit with REPLAY_OK.
void options_parse(struct options *options, int argc, char **argv);

#endif
