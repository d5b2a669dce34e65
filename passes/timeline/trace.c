// JSON in the Chrome trace format, event by event. Names come from the module's symbols and need no escapes: text that is
// read may have others, which are left out.
#include "passes/timeline/trace.h"

#include <inttypes.h>

enum { TRACK_DEVICE = 1, TRACK_LANE = 2 };
enum { ROWS_MOST = 16 }; // On more devices rows get no arrows: there are thousands in every layer.

static void separate(struct hec_trace *t) {
    fputs(t->any ? ",\n" : "\n", t->out);
    t->any = true;
}

static void write_name(FILE *out, const char *text) {
    for (; *text; text++) {
        if (*text >= ' ' && *text < 127 && *text != '"' && *text != '\\') fputc(*text, out);
    }
}

static void name_track(struct hec_trace *t, int64_t device, int track, const char *name) {
    separate(t);
    fprintf(t->out,
            "{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":%" PRId64
            ",\"tid\":%d,\"args\":{\"name\":\"%s\"}}",
            device, track, name);
}

static void write_stretch(void *context, const struct hec_stretch *s) {
    struct hec_trace *t = context;
    separate(t);
    fputs("{\"ph\":\"X\",\"name\":\"", t->out);
    if (s->label) {
        write_name(t->out, s->label);
    } else {
        fprintf(t->out, "%s%s", s->spent >= HEC_SPENT_COUNTS ? "waits: " : "",
                hec_spent_names[s->spent]);
    }
    if (s->layer >= 0) fprintf(t->out, " %d", s->layer);
    fprintf(t->out,
            "\",\"cat\":\"%s\",\"pid\":%d,\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f,\"args\":{\"pass\":"
            "\"%s\"}}",
            s->spent >= HEC_SPENT_COUNTS ? "wait" : "compute", s->device, TRACK_DEVICE, s->begin,
            s->end - s->begin, s->back ? "backward" : "forward");
}

static void write_part(void *context, const struct hec_lanes *lanes, const struct hec_part *p) {
    struct hec_trace *t = context;
    const int32_t layer = hec_transfer_layer(lanes, p->transfer);
    if (p->end <= p->begin) return;
    separate(t);
    fprintf(t->out, "{\"ph\":\"X\",\"name\":\"%s", hec_transfer_what(lanes, p->transfer));
    if (layer >= 0) fprintf(t->out, " %d", layer);
    fprintf(t->out, "\",\"cat\":\"transfer\",\"pid\":%d,\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f}",
            p->device, TRACK_LANE + (int)hec_transfer_lane(lanes, p->transfer), p->begin,
            p->end - p->begin);
}

static void write_end(struct hec_trace *t, const char *phase, int32_t device, enum hec_lane lane,
                      double at) {
    separate(t);
    fprintf(t->out,
            "{%s,\"name\":\"message\",\"cat\":\"message\",\"id\":%" PRId64
            ",\"pid\":%d,\"tid\":%d,\"ts\":%.3f}",
            phase, t->arrows, device, TRACK_LANE + (int)lane, at);
}

static void write_arrow(void *context, const struct hec_lanes *lanes, const struct hec_sent *s) {
    struct hec_trace *t = context;
    const enum hec_lane lane = hec_transfer_lane(lanes, s->transfer);
    if (lane == HEC_LANE_ROWS && t->all > ROWS_MOST) return;
    t->arrows++;
    write_end(t, "\"ph\":\"s\"", s->from, lane, s->begin);
    write_end(t, "\"ph\":\"f\",\"bp\":\"e\"", s->to, lane, s->end);
}

struct hec_watcher hec_trace_begin(struct hec_trace *t, const struct hec_machine *m) {
    const struct hec_watcher watcher = {write_stretch, write_part, write_arrow, t};
    t->all = m->nodes * m->devices;
    if (!t->out) return watcher;
    fputs("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[", t->out);
    for (int64_t d = 0; d < m->nodes * m->devices; d++) {
        separate(t);
        fprintf(t->out,
                "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":%" PRId64
                ",\"args\":{\"name\":\"device %" PRId64 ", node %" PRId64 "\"}}",
                d, d, d / m->devices);
        name_track(t, d, TRACK_DEVICE, "device");
        for (int lane = 0; lane < HEC_LANES; lane++)
            name_track(t, d, TRACK_LANE + lane, hec_lane_names[lane]);
    }
    return watcher;
}

void hec_trace_end(struct hec_trace *t) {
    if (t->out) fputs("\n]}\n", t->out);
}
