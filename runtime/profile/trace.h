// trace: a picture of a run, for Perfetto (ui.perfetto.dev) and chrome://tracing. The newest events are
// held, HRT_TRACE_EVENTS of them, and written at the end of the run; whole steps only.
#ifndef HECATE_RUNTIME_PROFILE_TRACE_H
#define HECATE_RUNTIME_PROFILE_TRACE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "runtime/base/error.h"
#include "runtime/profile/kernel_times.h"
#include "runtime/profile/transfers.h"

// Time between kernels below two microseconds is no event: mostly it is the clock's own.
enum { HRT_TRACE_EVENTS = 1 << 17, HRT_TRACE_BETWEEN_NS = 2000 };

enum hrt_trace_kind { HRT_TRACE_STEP, HRT_TRACE_PHASE, HRT_TRACE_LINE, HRT_TRACE_KERNEL };

struct hrt_trace_event {
    int64_t start, ns; // hk_clock
    int64_t number;    // STEP: which, from 1; KERNEL: its first size.
    const char *line;  // KERNEL, LINE: of the model; NULL: of none.
    float flops, bytes;
    float epilogue_ns; // Part of ns.
    int16_t index;     // PHASE: enum hrt_phase; KERNEL: row of the tally.
    int16_t kind;      // enum hrt_trace_kind
};
_Static_assert(HRT_TALLY_ROWS <= INT16_MAX, "an event's index holds any row");

enum { HRT_TRACE_SAVES = 64 };

struct hrt_trace_save { // A checkpoint, from when its values were taken until it was visible.
    int64_t start, ns, step;
};

struct hrt_trace {
    FILE *file; // NULL: nothing is traced.
    char *path;
    struct hrt_trace_event *event; // A ring of HRT_TRACE_EVENTS.
    int64_t events;                // Ever added.
    int64_t lost;                  // The latest start of one that found no place any more.
    struct hrt_lanes_trace lanes;
    struct hrt_trace_save save[HRT_TRACE_SAVES]; // A ring, too: a track of its own.
    int64_t saves;                               // Ever added.
    int64_t zero; // Times in the file count from here; its opener sets it.
};

// A file's description of its process.
struct hrt_trace_process {
    const char *program;
    int rank;
};

struct hrt_trace_written { // The contents of the file.
    int64_t first_step, last_step, events;
    bool left_out; // Older steps found no place.
};

// Creates or truncates `path` and allocates the ring.
bool hrt_profile_trace_open(struct hrt_trace *trace, const char *path, struct hrt_error *error);

// Nothing when closed.
void hrt_profile_trace_add(struct hrt_trace *trace, const struct hrt_trace_event *event);

// The same, of a checkpoint.
void hrt_profile_trace_add_save(struct hrt_trace *trace, const struct hrt_trace_save *save);

// Writes and closes the file. `tally` has the rows that events name.
bool hrt_profile_trace_write(struct hrt_trace *trace, const struct hrt_tally *tally,
                             const struct hrt_trace_process *process,
                             struct hrt_trace_written *written, struct hrt_error *error);

// Closes the file as it is, frees the ring.
void hrt_profile_trace_close(struct hrt_trace *trace);

// "forward", ...
const char *hrt_profile_phase_name(enum hrt_phase phase);

#endif
