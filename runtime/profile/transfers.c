// Lists of transport, as they end. The k-th message that a rank sends another on a lane is the k-th that the other
// receives from it there, so that both ends of an arrow find its name by themselves.
#include "runtime/profile/transfers.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/net/transport.h"

enum kind { LIST, SENT, RECEIVED };

struct hrt_lanes_event {
    int64_t start, end, heard; // hk_clock
    double bytes;              // LIST: received.
    uint32_t number;           // SENT, RECEIVED: of the message.
    int32_t peer;
    int16_t lane, kind;
};

const char *hrt_profile_lanes_trace_track(int track) {
    static const char *const name[HRT_LANES] = {
        [HRT_LANE_COUNTS] = "counts",         [HRT_LANE_ROWS] = "rows",
        [HRT_LANE_GATHER] = "gather experts", [HRT_LANE_ADDED] = "gather added experts",
        [HRT_LANE_REDUCE] = "reduce experts", [HRT_LANE_DENSE] = "sum what all have",
        [HRT_LANE_SAVE] = "owners and files",
    };
    return track >= 1 && track <= HRT_LANES ? name[track - 1] : NULL;
}

static void add(struct hrt_lanes_trace *trace, const struct hrt_lanes_event *event) {
    trace->event[trace->events++ % HRT_LANES_EVENTS] = *event;
}

// A list that was filled in anew (`next`) has no steps left to tell of, here as on the other side.
static void add_messages(struct hrt_lanes_trace *trace, const struct hrt_steps *steps,
                         const struct hrt_lanes_event *list) {
    for (int32_t i = 0; i < steps->count && !steps->next; i++) {
        const struct hrt_step *step = &steps->step[i];
        if (step->kind != HRT_SEND && step->kind != HRT_RECV) continue;
        const bool sends = step->kind == HRT_SEND;
        uint32_t *count =
            trace->messages + ((int64_t)list->lane * trace->comm->size + step->peer) * 2;
        struct hrt_lanes_event message = *list;
        message.kind = sends ? SENT : RECEIVED;
        message.peer = step->peer;
        message.number = count[sends ? 0 : 1]++;
        add(trace, &message);
    }
}

static void list_ended(void *context, int lane, const struct hrt_steps *steps) {
    struct hrt_lanes_trace *trace = context;
    pthread_mutex_lock(&trace->lock);
    struct hrt_lanes_event list = {.start = steps->begun,
                                   .end = steps->ended,
                                   .heard = steps->heard,
                                   .lane = (int16_t)lane,
                                   .kind = LIST};
    if (list.start < trace->free[lane]) list.start = trace->free[lane]; // It was behind another.
    trace->free[lane] = list.end;
    for (int32_t i = 0; i < steps->count && !steps->next; i++)
        if (steps->step[i].kind == HRT_RECV) list.bytes += (double)steps->step[i].bytes;
    add(trace, &list);
    add_messages(trace, steps, &list);
    pthread_mutex_unlock(&trace->lock);
}

bool hrt_profile_lanes_trace_start(struct hrt_lanes_trace *trace, struct hrt_comm *comm) {
    *trace = (struct hrt_lanes_trace){
        .comm = comm,
        .watch = {list_ended, trace},
        .lock = PTHREAD_MUTEX_INITIALIZER,
        .event = malloc(HRT_LANES_EVENTS * sizeof *trace->event),
        .messages = calloc((size_t)comm->size * HRT_LANES * 2, sizeof *trace->messages),
        .free = calloc(HRT_LANES, sizeof *trace->free),
    };
    if (!trace->event || !trace->messages || !trace->free) {
        hrt_profile_lanes_trace_stop(trace);
        return false;
    }
    __atomic_store_n(&comm->lists, &trace->watch, __ATOMIC_RELEASE);
    return true;
}

void hrt_profile_lanes_trace_stop(struct hrt_lanes_trace *trace) {
    if (!trace->comm) return;
    __atomic_store_n(&trace->comm->lists, NULL, __ATOMIC_RELEASE);
    free(trace->event);
    free(trace->messages);
    free(trace->free);
    *trace = (struct hrt_lanes_trace){0};
}

void hrt_profile_lanes_trace_hold(struct hrt_lanes_trace *trace) {
    if (trace->comm) pthread_mutex_lock(&trace->lock);
}

void hrt_profile_lanes_trace_let_go(struct hrt_lanes_trace *trace) {
    if (trace->comm) pthread_mutex_unlock(&trace->lock);
}

int64_t hrt_profile_lanes_trace_held(const struct hrt_lanes_trace *trace) {
    return trace->events < HRT_LANES_EVENTS ? trace->events : HRT_LANES_EVENTS;
}

static json_t *list_object(const struct hrt_lanes_event *event, double start, double took,
                           int rank) {
    const char *name = hrt_profile_lanes_trace_track(event->lane + 1);
    const int64_t late = event->heard > event->start ? event->heard - event->start : 0;
    return json_pack("{s:s s:s s:s s:f s:f s:i s:i s:{s:f s:f}}", "name", name, "cat", "lane", "ph",
                     "X", "ts", start, "dur", took, "pid", rank, "tid", event->lane + 1, "args",
                     "bytes received", event->bytes, "us until all had begun", 1e-3 * (double)late);
}

// Perfetto takes an arrow to the slice that its end is in: both are a little inside.
static json_t *arrow_object(const struct hrt_lanes_event *event, double start, double took,
                            int rank) {
    const bool sent = event->kind == SENT;
    const int from = sent ? rank : event->peer, to = sent ? event->peer : rank;
    json_t *id = json_sprintf("%d>%d.%d.%u", from, to, event->lane, event->number);
    json_t *arrow =
        json_pack("{s:s s:s s:s s:o s:f s:i s:i}", "name", "message", "cat", "message", "ph",
                  sent ? "s" : "f", "id", id, "ts", start + took * (sent ? 0.01 : 0.99), "pid",
                  rank, "tid", event->lane + 1);
    if (arrow && !sent) json_object_set_new(arrow, "bp", json_string("e"));
    return arrow;
}

json_t *hrt_profile_lanes_trace_object(const struct hrt_lanes_trace *trace, int64_t index,
                                       int64_t zero, int64_t from) {
    const int64_t oldest = trace->events - hrt_profile_lanes_trace_held(trace);
    const struct hrt_lanes_event *event = &trace->event[(oldest + index) % HRT_LANES_EVENTS];
    const double start = 1e-3 * (double)(event->start - zero),
                 took = 1e-3 * (double)(event->end - event->start);
    if (event->start < from) return NULL;
    return event->kind == LIST ? list_object(event, start, took, trace->comm->rank)
                               : arrow_object(event, start, took, trace->comm->rank);
}
