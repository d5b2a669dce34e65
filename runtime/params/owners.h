// Who owns the chunks of experts: one rank has a chunk's parameters, gradient and optimizer states.
//
// Owners change between steps only (runtime/fssdp/reshard.h). Whoever asks, asks here: initialization,
// files, the optimizer, and what moves rows and chunks.
#ifndef HECATE_RUNTIME_PARAMS_OWNERS_H
#define HECATE_RUNTIME_PARAMS_OWNERS_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/error.h"
#include "runtime/program.h"

// Makes the table of a program of several ranks whose experts have owners: the program's first owners,
// or else those of hrt_expert_owner. Nothing to do for others. The caller destroys it.
bool hrt_owners_create(struct hrt_program *program, struct hrt_error *error);
void hrt_owners_destroy(struct hrt_program *program);

// The rank that owns the chunk, of a program whose experts have owners.
int hrt_owner(const struct hrt_program *program, int set, int64_t layer, int64_t expert);

// Whether the chunk's parameters lie at their place on this rank: it owns them, or every rank has all.
bool hrt_owns(const struct hrt_program *program, int set, int64_t layer, int64_t expert);

// Chunks of the set that the fullest rank owns at first, all layers together: never fewer than after a
// change of owners, which leaves every rank equally many. All of them where every rank has all.
int64_t hrt_most_owned(const struct hrt_program *program, int set);

#endif
