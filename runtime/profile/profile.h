// profile: where the time of training steps goes. It observes the kernels that the training thread
// calls and is told of the phases of a step; the time between two kernels in forward and backward
// is the program's own: loops that the compiler emitted (and, over ranks, the exchange of rows).
//
// Nothing is allocated while steps run, and results are bit for bit those of a run without it.
// Every function takes NULL for "no profile" and then does nothing.
#ifndef HECATE_RUNTIME_PROFILE_PROFILE_H
#define HECATE_RUNTIME_PROFILE_PROFILE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "runtime/base/error.h"
#include "runtime/device/device.h"
#include "runtime/net/comm.h"
#include "runtime/profile/kernel_times.h"
#include "runtime/program.h"

struct hrt_profile;

struct hrt_profile_request {
    bool table;        // Print one at the end.
    const char *trace; // File to write; NULL: none. Ranks but the first add ".RANK".
    int64_t tokens;    // Tokens of one step.
};

// Prepares a profile for the request; *profile is NULL for an empty one. For a table it measures the
// processor for a tenth of a second. False: the file cannot be written, or out of memory. Collective. `comm` and
// `device` stay where they are.
bool hrt_profile_open(struct hrt_profile **profile, const struct hrt_profile_request *request,
                      const struct hrt_program *program, struct hrt_comm *comm,
                      const struct hrt_device *device, struct hrt_error *error);

// A step, numbered from 1, begins in HRT_PHASE_OTHER and ends. Kernels between steps are ignored.
void hrt_profile_begin_step(struct hrt_profile *profile, int64_t number);
void hrt_profile_end_step(struct hrt_profile *profile);

// The phase before ends where `phase` begins.
void hrt_profile_enter(struct hrt_profile *profile, enum hrt_phase phase);

// A checkpoint of step `step` that was begun then, by hk_clock, has ended now: a trace has it on a track of its own.
void hrt_profile_saved(struct hrt_profile *profile, int64_t step, int64_t begun);

// Writes the trace; the first rank prints the table and the size of the trace.
bool hrt_profile_finish(struct hrt_profile *profile, FILE *out, struct hrt_error *error);

// Writes the trace of a run that did not come to hrt_profile_finish as far as it can, and frees all.
void hrt_profile_close(struct hrt_profile *profile);

#endif
