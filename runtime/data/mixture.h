// Mixtures: each training sequence reads one of several sources, by their shares.
//
// Sequences come in blocks of 256, whose order is permuted by (seed, block). Behind any number of blocks each source
// has its share of the sequences, up to one for each source. A source numbers its own sequences from 0 on, so its
// order is that of a run on it alone. The source depends on (seed, n) and the shares alone.
#ifndef HECATE_RUNTIME_DATA_MIXTURE_H
#define HECATE_RUNTIME_DATA_MIXTURE_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/error.h"

enum { HRT_SOURCES_MAX = 64 };

struct hrt_mixture {
    int sources;
    uint64_t
        part[HRT_SOURCES_MAX]; // Its share of the sequences that no source before has, in 2^-64.
};

struct hrt_turn { // Sequence number `sequence` of a source's own.
    int source;
    uint64_t sequence;
};

// Prepares the mixture of these shares, which are positive; their sum does not matter.
struct hrt_mixture hrt_data_mixture(const double *share, int sources);

// The source of sequence `sequence`, below 2^60.
struct hrt_turn hrt_data_mixture_turn(const struct hrt_mixture *mixture, uint64_t seed,
                                      uint64_t sequence);

// How many of the first `sequences` sequences each source has; `count` [sources].
void hrt_data_mixture_count(const struct hrt_mixture *mixture, uint64_t seed, uint64_t sequences,
                            uint64_t *count);

// Takes `text` apart, PATH=SHARE or PATH. An existing file of the whole name is a path. `share` 0: none is given.
// False: the share is no positive number, or the path too long.
bool hrt_data_share_read(const char *text, char path[PATH_MAX], double *share,
                         struct hrt_error *error);

#endif
