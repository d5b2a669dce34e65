// The timeline as a trace that Perfetto and chrome://tracing show: a process for each device, a track for its own time
// and one for each lane. Arrows lead from where a message leaves to where it arrives.
#ifndef HECATE_PASSES_TIMELINE_TRACE_H
#define HECATE_PASSES_TIMELINE_TRACE_H

#include <stdio.h>

#include "passes/timeline/timeline.h"

struct hec_trace {
    FILE *out;   // NULL: nothing is written.
    int64_t all; // Devices.
    int64_t arrows;
    bool any;
};

// Writes the head and the names of tracks; the watcher writes the rest. The trace is borrowed.
struct hec_watcher hec_trace_begin(struct hec_trace *trace, const struct hec_machine *machine);

// Ends the text. The file stays the caller's.
void hec_trace_end(struct hec_trace *trace);

#endif
