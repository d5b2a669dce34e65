// The counts of a profile so far: for profile.c, table.c and their test.
#ifndef HECATE_RUNTIME_PROFILE_RECORD_H
#define HECATE_RUNTIME_PROFILE_RECORD_H

#include "runtime/profile/profile.h"
#include "runtime/profile/trace.h"

// For whom the host waits.
enum hrt_awaited { HRT_AWAITED_RANKS, HRT_AWAITED_DEVICE, HRT_AWAITED };

struct hrt_waits_of {
    const struct hrt_wait *now; // [room] As it is counted there; NULL: nobody is waited for.
    int room;
    struct hrt_wait before[HRT_WAITS]; // At the beginning of the step.
    struct hrt_wait sum[HRT_WAITS];
};

struct hrt_profile {
    struct hk_observer observer;
    struct hrt_tally tally; // Kernels, and the time between them.
    struct hrt_trace trace;
    struct hrt_trace_process process;
    bool table;

    // Facts of the machine and the run, for the heading.
    double peak;      // hk_peak of the program's precision; 0: not measured.
    double peak_bf16; // The same of kernels whose operands are bf16; 0: the program has none.
    int threads, ranks;
    const char *isa;
    int64_t tokens;

    // Summed over the counted steps. When there are several, the first is not counted.
    int64_t steps, first_step, last_step;
    int64_t step_ns, phase_ns[HRT_PHASES];
    bool warm; // A step is left out.
    struct hrt_waits_of waits[HRT_AWAITED];

    // Times of the running step.
    int64_t number, step_start, phase_start;
    enum hrt_phase phase;
    int64_t kernel_end; // End of the last kernel of this phase, or where the phase began.
    int kernel;         // Row of the kernel; -1: none yet.
};

// As the functions without _at, which take the time from hk_clock.
void hrt_profile_begin_step_at(struct hrt_profile *profile, int64_t number, int64_t now);
void hrt_profile_enter_at(struct hrt_profile *profile, enum hrt_phase phase, int64_t now);
void hrt_profile_end_step_at(struct hrt_profile *profile, int64_t now);

// Calls of the observer.
void hrt_profile_called(void *profile, const struct hk_call *call);

// Prints the table of the counts.
void hrt_profile_print(FILE *out, const struct hrt_profile *profile);

#endif
