// Where experts live: which rank owns each chunk now, and which rank this process is.
//
// The owner of a chunk has its parameters, gradient and optimizer states. Owners change between steps only
// (runtime/experts/change_owners.h). Initialization, files, the optimizer, and transfers of rows and chunks all find
// owners here.
#ifndef HECATE_RUNTIME_PARAMS_PLACEMENT_H
#define HECATE_RUNTIME_PARAMS_PLACEMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/error.h"
#include "runtime/plan/held.h"
#include "runtime/program.h"

struct hrt_placement {
    const struct hrt_program *program; // Borrowed.
    int rank;                          // This process's.
    int32_t **owner;      // [sets] of [layers][experts], ranks. NULL: every rank has all experts.
    struct hpl_held held; // The parts of buffers that each rank holds, by the owners of now.
};

// The first owners: those that the compiler has chosen, or else hpl_even_owner's; no table where every
// rank has all experts. The caller destroys it. False: out of memory.
bool hrt_params_placement_create(struct hrt_placement *placement, const struct hrt_program *program,
                                 int rank, struct hrt_error *error);

// Also of a zeroed one.
void hrt_params_placement_destroy(struct hrt_placement *placement);

// The rank that owns the chunk: the lowest that has it where every rank has all.
int hrt_params_owner(const struct hrt_placement *placement, int set, int64_t layer, int64_t expert);

// Whether the chunk's parameters lie at their place on this rank: it owns them, or every rank has all.
bool hrt_params_owns(const struct hrt_placement *placement, int set, int64_t layer, int64_t expert);

#endif
