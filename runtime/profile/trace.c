// The ring, and the Chrome trace format: complete events ("X") on a track per rank, where steps hold phases, phases
// lines of the model, and lines kernels, and on one track per lane.
#include "runtime/profile/trace.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>

#include "files/files.h"
#include "runtime/net/transport.h"

const char *hrt_profile_phase_name(enum hrt_phase phase) {
    static const char *const name[] = {
        [HRT_PHASE_OTHER] = "other",      [HRT_PHASE_DATA] = "data",
        [HRT_PHASE_FORWARD] = "forward",  [HRT_PHASE_BACKWARD] = "backward",
        [HRT_PHASE_RANKS] = "over ranks", [HRT_PHASE_OPTIMIZER] = "optimizer",
    };
    return name[phase];
}

bool hrt_profile_trace_open(struct hrt_trace *trace, const char *path, struct hrt_error *error) {
    *trace = (struct hrt_trace){
        .path = strdup(path),
        .event = malloc(HRT_TRACE_EVENTS * sizeof *trace->event),
    };
    if (!trace->path || !trace->event) {
        hrt_profile_trace_close(trace);
        return hrt_fail(error, "out of memory");
    }
    const char *why;
    trace->file = hf_output(path, &why);
    if (trace->file) return true;
    hrt_fail(error, "cannot write '%s': %s", path, why);
    hrt_profile_trace_close(trace);
    return false;
}

void hrt_profile_trace_close(struct hrt_trace *trace) {
    if (trace->file) fclose(trace->file);
    hrt_profile_lanes_trace_stop(&trace->lanes);
    free(trace->path);
    free(trace->event);
    *trace = (struct hrt_trace){0};
}

void hrt_profile_trace_add(struct hrt_trace *trace, const struct hrt_trace_event *event) {
    if (!trace->file) return;
    struct hrt_trace_event *place = &trace->event[trace->events++ % HRT_TRACE_EVENTS];
    if (trace->events > HRT_TRACE_EVENTS && place->start > trace->lost) trace->lost = place->start;
    *place = *event;
}

void hrt_profile_trace_add_save(struct hrt_trace *trace, const struct hrt_trace_save *save) {
    if (trace->file) trace->save[trace->saves++ % HRT_TRACE_SAVES] = *save;
}

// An enclosing event comes before those inside it: readers nest events in the order of the file.
static int by_time(const void *left, const void *right) {
    const struct hrt_trace_event *a = left, *b = right;
    if (a->start != b->start) return a->start < b->start ? -1 : 1;
    if (a->ns != b->ns) return a->ns > b->ns ? -1 : 1;
    return (a->kind > b->kind) - (a->kind < b->kind);
}

// Sorts the events that are held and leaves out those before the first whole step, if any is whole.
// Returns how many are left; *from is the first.
static int64_t select_events(const struct hrt_trace *trace, const struct hrt_trace_event **from) {
    const bool full = trace->events > HRT_TRACE_EVENTS;
    const int64_t held = full ? HRT_TRACE_EVENTS : trace->events;
    int64_t skipped = 0;
    qsort(trace->event, (size_t)held, sizeof *trace->event, by_time);
    while (full && skipped < held &&
           (trace->event[skipped].kind != HRT_TRACE_STEP ||
            trace->event[skipped].start <= trace->lost))
        skipped++;
    if (skipped == held) skipped = 0;
    *from = trace->event + skipped;
    return held - skipped;
}

// To a tenth: nobody reads more.
static json_t *tenths(double number) {
    return json_real(round(10 * number) / 10);
}

// The details of a kernel's event, shown when it is clicked on.
static json_t *args_of(const struct hrt_trace_event *event, const struct hrt_tally *tally) {
    const struct hrt_tally_row *row = &tally->row[event->index];
    json_t *args = json_object();
    if (row->section == HRT_SECTION_BETWEEN) {
        static const char *const key[] = {"after", "before"};
        for (int i = 0; i < 2; i++) {
            if (row->size[i] >= 0)
                json_object_set_new(args, key[i], json_string(tally->row[row->size[i]].name));
        }
        return args;
    }
    const char *at = row->sizes ? row->sizes + hrt_tally_varies(row) : "";
    for (int i = 0; *at && i < HK_DIMS_MAX; i++) {
        const size_t length = strcspn(at, " ");
        const int64_t size = i == 0 ? event->number : row->size[i];
        json_object_setn_new(args, at, length, json_integer(size));
        at += length + (at[length] == ' ');
    }
    const double epilogue = (double)event->epilogue_ns, own = (double)event->ns - epilogue;
    if (event->flops > 0)
        json_object_set_new(args, "GFLOP/s", tenths((double)event->flops / fmax(own, 1)));
    if (event->bytes > 0)
        json_object_set_new(args, "GB/s", tenths((double)event->bytes / fmax(own, 1)));
    if (epilogue > 0) json_object_set_new(args, "us in its epilogue", tenths(1e-3 * epilogue));
    return args;
}

static const char *category_of(const struct hrt_tally_row *row) {
    static const char *const name[] = {
        [HRT_SECTION_PRODUCTS] = "product",    [HRT_SECTION_ATTENTION] = "attention",
        [HRT_SECTION_PASSES] = "pass",         [HRT_SECTION_BETWEEN] = "between",
        [HRT_SECTION_OPTIMIZER] = "optimizer",
    };
    return name[row->section];
}

static json_t *object_of(const struct hrt_trace_event *event, const struct hrt_trace *trace,
                         const struct hrt_tally *tally, int rank) {
    char name[2 * HRT_SHAPE_MAX] = "between kernels", shape[HRT_SHAPE_MAX];
    const char *category = "phase";
    json_t *args = NULL;
    if (event->kind == HRT_TRACE_STEP) {
        snprintf(name, sizeof name, "step %lld", (long long)event->number);
    } else if (event->kind == HRT_TRACE_PHASE) {
        snprintf(name, sizeof name, "%s", hrt_profile_phase_name((enum hrt_phase)event->index));
    } else if (event->kind == HRT_TRACE_LINE) {
        snprintf(name, sizeof name, "%s", event->line);
        category = "line";
    } else {
        const struct hrt_tally_row *row = &tally->row[event->index];
        hrt_profile_tally_shape(shape, row, event->number);
        if (row->section != HRT_SECTION_BETWEEN)
            snprintf(name, sizeof name, "%s%s%s", row->name, *shape ? " " : "", shape);
        category = category_of(row);
        args = args_of(event, tally);
    }
    return json_pack("{s:s s:s s:s s:f s:f s:i s:i s:o*}", "name", name, "cat", category, "ph", "X",
                     "ts", 1e-3 * (double)(event->start - trace->zero), "dur",
                     1e-3 * (double)event->ns, "pid", rank, "tid", 0, "args", args);
}

// Dumps and frees `object`; every one but the first goes behind a comma.
static bool write_object(const struct hrt_trace *trace, json_t *object, bool first) {
    const size_t flags = JSON_COMPACT | JSON_REAL_PRECISION(15);
    const bool done = object && (first || fputc(',', trace->file) != EOF) &&
                      fputc('\n', trace->file) != EOF &&
                      json_dumpf(object, trace->file, flags) == 0;
    json_decref(object);
    return done;
}

// A line's event lies around the kernels of it that follow each other, `left` at the most.
static struct hrt_trace_event line_of(const struct hrt_trace_event *first, int64_t left) {
    struct hrt_trace_event line = *first;
    line.kind = HRT_TRACE_LINE;
    for (int64_t i = 1; i < left && first[i].kind == HRT_TRACE_KERNEL; i++) {
        if (first[i].line == line.line)
            line.ns = first[i].start + first[i].ns - line.start;
        else if (first[i].line)
            break; // Code between two kernels belongs to neither.
    }
    return line;
}

static bool write_event(struct hrt_trace *trace, const struct hrt_trace_event *event,
                        const struct hrt_tally *tally, int rank) {
    return write_object(trace, object_of(event, trace, tally, rank), false);
}

// `count` events, and their lines of the model.
static bool write_events(struct hrt_trace *trace, const struct hrt_trace_event *event,
                         int64_t count, const struct hrt_tally *tally, int rank) {
    const char *current = NULL;
    bool done = true;
    for (int64_t i = 0; done && i < count; i++) {
        const bool kernel = event[i].kind == HRT_TRACE_KERNEL;
        if (!kernel) current = NULL;
        if (kernel && event[i].line && event[i].line != current) {
            const struct hrt_trace_event line = line_of(&event[i], count - i);
            done = write_event(trace, &line, tally, rank);
            current = event[i].line;
        }
        done = done && write_event(trace, &event[i], tally, rank);
    }
    return done;
}

static json_t *metadata(const char *what, int rank, json_t *name) {
    return json_pack("{s:s s:s s:i s:i s:{s:o}}", "name", what, "ph", "M", "pid", rank, "tid", 0,
                     "args", "name", name);
}

static json_t *name_of_track(int track, const char *name, int rank) {
    json_t *named = metadata("thread_name", rank, json_string(name));
    json_object_set_new(named, "tid", json_integer(track));
    return named;
}

// Tracks of lanes, with what is as new as the steps that are held.
static bool write_lanes(struct hrt_trace *trace, int64_t from, int rank) {
    bool done = true;
    if (!trace->lanes.comm) return true;
    for (int track = 1; done && hrt_profile_lanes_trace_track(track); track++) {
        done = write_object(trace, name_of_track(track, hrt_profile_lanes_trace_track(track), rank),
                            false);
    }
    hrt_profile_lanes_trace_hold(&trace->lanes);
    for (int64_t i = 0; done && i < hrt_profile_lanes_trace_held(&trace->lanes); i++) {
        json_t *object = hrt_profile_lanes_trace_object(&trace->lanes, i, trace->zero, from);
        done = !object || write_object(trace, object, false);
    }
    hrt_profile_lanes_trace_let_go(&trace->lanes);
    return done;
}

// The track of checkpoints, behind those of lanes.
static bool write_saves(struct hrt_trace *trace, int64_t from, int rank) {
    const int64_t first = trace->saves > HRT_TRACE_SAVES ? trace->saves - HRT_TRACE_SAVES : 0;
    const int track = HRT_LANES + 1;
    bool done =
        trace->saves == 0 || write_object(trace, name_of_track(track, "saving", rank), false);
    for (int64_t i = first; done && i < trace->saves; i++) {
        const struct hrt_trace_save *save = &trace->save[i % HRT_TRACE_SAVES];
        if (save->start < from) continue;
        json_t *name = json_sprintf("checkpoint of step %lld", (long long)save->step);
        json_t *object = json_pack("{s:o s:s s:s s:f s:f s:i s:i}", "name", name, "cat", "saving",
                                   "ph", "X", "ts", 1e-3 * (double)(save->start - trace->zero),
                                   "dur", 1e-3 * (double)save->ns, "pid", rank, "tid", track);
        done = write_object(trace, object, false);
    }
    return done;
}

static bool write_all(struct hrt_trace *trace, const struct hrt_tally *tally,
                      const struct hrt_trace_process *process, struct hrt_trace_written *written) {
    const struct hrt_trace_event *event;
    const int rank = process->rank;
    written->events = select_events(trace, &event);
    written->left_out = trace->events > HRT_TRACE_EVENTS;
    json_t *name = json_sprintf("%s, rank %d", process->program, rank);
    bool done = fputs("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[", trace->file) != EOF &&
                write_object(trace, metadata("process_name", rank, name), true) &&
                write_object(trace, metadata("thread_name", rank, json_string("step")), false);
    for (int64_t i = 0; i < written->events; i++) {
        if (event[i].kind != HRT_TRACE_STEP) continue;
        if (!written->first_step) written->first_step = event[i].number;
        written->last_step = event[i].number;
    }
    done = done && write_events(trace, event, written->events, tally, rank);
    const int64_t from = written->events > 0 ? event[0].start : 0;
    done = done && write_lanes(trace, from, rank) && write_saves(trace, from, rank);
    return done && fputs("\n]}\n", trace->file) != EOF;
}

bool hrt_profile_trace_write(struct hrt_trace *trace, const struct hrt_tally *tally,
                             const struct hrt_trace_process *process,
                             struct hrt_trace_written *written, struct hrt_error *error) {
    *written = (struct hrt_trace_written){0};
    const bool dumped = write_all(trace, tally, process, written);
    const bool flushed = dumped && fflush(trace->file) == 0;
    if (!flushed) {
        hrt_fail(error, "cannot write '%s': %s", trace->path, strerror(errno));
        __fpurge(trace->file); // Nobody takes the rest.
    }
    const bool closed = fclose(trace->file) == 0;
    trace->file = NULL;
    if (flushed && !closed) hrt_fail(error, "cannot write '%s': %s", trace->path, strerror(errno));
    return flushed && closed;
}
