// Transfers between ranks over time, for a trace: a track per lane, and an arrow from where a message leaves to where
// it arrives. The newest events are held, HRT_LANES_EVENTS of them.
#ifndef HECATE_RUNTIME_PROFILE_TRANSFERS_H
#define HECATE_RUNTIME_PROFILE_TRANSFERS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "runtime/net/comm.h"

struct json_t;

enum { HRT_LANES_EVENTS = 1 << 16 };

struct hrt_lanes_event; // lanes.c

struct hrt_lanes_trace {
    struct hrt_comm *comm; // NULL: nothing is held.
    struct hrt_lists_watch watch;
    pthread_mutex_t lock;          // Lists end on the thread that turns their lane.
    struct hrt_lanes_event *event; // A ring.
    int64_t events;                // Ever added.
    uint32_t *messages;            // [lanes][ranks][2] so far: to the rank, from it.
    int64_t *free;                 // [lanes] when the list before had ended.
};

// Records the lists that end on the lanes of `comm` from now on, until hrt_profile_lanes_trace_stop. False: no memory.
bool hrt_profile_lanes_trace_start(struct hrt_lanes_trace *trace, struct hrt_comm *comm);

// No list may end meanwhile. Also of a zeroed one.
void hrt_profile_lanes_trace_stop(struct hrt_lanes_trace *trace);

// How many events are held, and number `index` of them for the trace format, times counted from `zero`; NULL: it began
// before `from`, or there is no memory. The caller gives it back by json_decref. Not while one is added: between hold
// and let_go.
void hrt_profile_lanes_trace_hold(struct hrt_lanes_trace *trace);
void hrt_profile_lanes_trace_let_go(struct hrt_lanes_trace *trace);
int64_t hrt_profile_lanes_trace_held(const struct hrt_lanes_trace *trace);
struct json_t *hrt_profile_lanes_trace_object(const struct hrt_lanes_trace *trace, int64_t index,
                                              int64_t zero, int64_t from);

// The name of track number `track`, from 1 on; NULL: there is none.
const char *hrt_profile_lanes_trace_track(int track);

#endif
