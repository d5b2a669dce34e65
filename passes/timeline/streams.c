// Ends of streams, port by port.
#include "passes/timeline/streams.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "passes/timeline/agenda.h"

enum state { IDLE, LATER, BEGUN };

struct volley {
    enum state state;
    double begin;
    double *left; // [ports] bytes
    double *end;  // [ports]
    double *held; // [ports][volleys] time that streams of others took from its own
    bool *told;   // [devices]
    int32_t open; // Devices that have not been told.
};

struct hec_streams {
    int32_t devices, of_node, ports, volleys;
    const double *capacity;
    double now;
    double *since; // [ports] until then `left` of the volleys is true.
    struct volley *volley;
    struct volley **begun; // [volleys] those that have begun
    int32_t begun_count;
    struct volley **sorted; // [volleys] those of one port
    struct hec_agenda ends; // (volley, device), by their ends.
};

static void *take(size_t count, size_t size) {
    void *memory = calloc(count ? count : 1, size);
    if (!memory) abort(); // As the arenas of the compiler do.
    return memory;
}

struct hec_streams *hec_streams_create(int32_t devices, int32_t of_node, int32_t volleys,
                                       const double *capacity) {
    struct hec_streams *s = take(1, sizeof *s);
    const int32_t ports = 2 * devices + 2 * (devices / of_node);
    *s = (struct hec_streams){.devices = devices,
                              .of_node = of_node,
                              .ports = ports,
                              .volleys = volleys,
                              .capacity = capacity,
                              .since = take((size_t)ports, sizeof *s->since),
                              .volley = take((size_t)volleys, sizeof *s->volley),
                              .begun = take((size_t)volleys, sizeof *s->begun),
                              .sorted = take((size_t)volleys, sizeof *s->sorted)};
    for (int32_t i = 0; i < volleys; i++) {
        s->volley[i].left = take(2 * (size_t)ports, sizeof *s->volley[i].left);
        s->volley[i].end = s->volley[i].left + ports;
        s->volley[i].held = take((size_t)(ports * volleys), sizeof *s->volley[i].held);
        s->volley[i].told = take((size_t)devices, sizeof *s->volley[i].told);
    }
    return s;
}

void hec_streams_free(struct hec_streams *s) {
    if (!s) return;
    for (int32_t i = 0; i < s->volleys; i++) {
        free(s->volley[i].left);
        free(s->volley[i].held);
        free(s->volley[i].told);
    }
    free(s->since);
    free(s->volley);
    free(s->begun);
    free(s->sorted);
    free(s->ends.item);
    free(s);
}

// ---- one port

// Sorts the streams that have bytes left at the port, those with fewest first. Returns how many.
static int32_t sort_streams(struct hec_streams *s, int32_t port) {
    struct volley **of = s->sorted;
    int32_t count = 0;
    for (int32_t i = 0; i < s->begun_count; i++) {
        struct volley *w = s->begun[i];
        if (w->left[port] <= 0) continue;
        int32_t at = count++;
        for (; at > 0 && of[at - 1]->left[port] > w->left[port]; at--) of[at] = of[at - 1];
        of[at] = w;
    }
    return count;
}

// While these streams got so many bytes each, every one of them waited for the others.
static void hold(struct hec_streams *s, int32_t port, struct volley *const *of, int32_t count,
                 double each) {
    const double us = each / s->capacity[port];
    for (int32_t i = 0; i < count && count > 1; i++) {
        for (int32_t k = 0; k < count; k++) {
            if (k != i) of[i]->held[port * s->volleys + (int32_t)(of[k] - s->volley)] += us;
        }
    }
}

// Subtracts the bytes that the port has carried until now from its streams.
static void serve(struct hec_streams *s, int32_t port) {
    const int32_t count = sort_streams(s, port);
    struct volley *const *of = s->sorted;
    double room = s->capacity[port] * (s->now - s->since[port]);
    s->since[port] = s->now;
    for (int32_t i = 0; i < count; i++) {
        const double first = of[i]->left[port], all = first * (count - i);
        const double each = all <= room ? first : room / (count - i);
        for (int32_t k = i; k < count; k++) of[k]->left[port] -= each;
        hold(s, port, of + i, count - i, each);
        if (all > room) return;
        room -= all;
    }
}

static void list_begun(struct hec_streams *s) {
    s->begun_count = 0;
    for (int32_t i = 0; i < s->volleys; i++) {
        if (s->volley[i].state == BEGUN) s->begun[s->begun_count++] = &s->volley[i];
    }
}

static void serve_all(struct hec_streams *s) {
    for (int32_t p = 0; p < s->ports; p++) serve(s, p);
}

// When its streams end if no other one begins.
static void find_ends(struct hec_streams *s, int32_t port) {
    const int32_t count = sort_streams(s, port);
    struct volley *const *of = s->sorted;
    double at = s->since[port], before = 0;
    for (int32_t i = 0; i < count; i++) {
        const double left = of[i]->left[port];
        at += (left - before) * (count - i) / s->capacity[port];
        of[i]->end[port] = at;
        before = left;
    }
}

// ---- volleys

// The port of the last stream that the device waits for.
static int32_t last_port(const struct hec_streams *s, const struct volley *w, int32_t device) {
    const int32_t nodes = s->devices / s->of_node, node = 2 * s->devices + device / s->of_node;
    const int32_t port[] = {device, s->devices + device, node, node + nodes};
    int32_t last = port[0];
    for (int k = 1; k < 4; k++) {
        if (w->end[port[k]] >= w->end[last]) last = port[k];
    }
    return last;
}

// Lists when devices are done, of all volleys.
static void list_ends(struct hec_streams *s) {
    s->ends.count = 0;
    for (int32_t i = 0; i < s->volleys; i++) {
        const struct volley *w = &s->volley[i];
        for (int32_t d = 0; d < s->devices && w->state == BEGUN; d++) {
            if (w->told[d]) continue;
            const double end = fmax(w->end[last_port(s, w, d)], s->now);
            hec_agenda_append(
                &s->ends, (struct hec_item){end, (int64_t)i * s->devices + d, i * s->devices + d});
        }
    }
    hec_agenda_order(&s->ends);
}

// Volleys whose time has come begin.
static void begin_volleys(struct hec_streams *s) {
    serve_all(s);
    for (int32_t i = 0; i < s->volleys; i++) {
        struct volley *w = &s->volley[i];
        if (w->state != LATER || w->begin > s->now) continue;
        w->state = BEGUN;
        for (int32_t p = 0; p < s->ports; p++) w->end[p] = s->now;
    }
    list_begun(s);
    for (int32_t p = 0; p < s->ports; p++) find_ends(s, p);
    list_ends(s);
}

void hec_streams_start(struct hec_streams *s, int32_t volley, double begin, const double *bytes) {
    struct volley *w = &s->volley[volley];
    assert(w->state == IDLE && begin >= s->now);
    w->state = LATER;
    w->begin = begin;
    w->open = s->devices;
    memcpy(w->left, bytes, (size_t)s->ports * sizeof *bytes);
    memset(w->held, 0, (size_t)(s->ports * s->volleys) * sizeof *w->held);
    memset(w->told, 0, (size_t)s->devices * sizeof *w->told);
}

static double next_begin(const struct hec_streams *s) {
    double next = INFINITY;
    for (int32_t i = 0; i < s->volleys; i++) {
        const struct volley *w = &s->volley[i];
        if (w->state == LATER && w->begin < next) next = w->begin;
    }
    return next;
}

double hec_streams_next(const struct hec_streams *s) {
    const double begin = next_begin(s), end = s->ends.count ? s->ends.item[0].at : INFINITY;
    return begin < end ? begin : end;
}

void hec_streams_pass(struct hec_streams *s, double now) {
    s->now = now;
    if (next_begin(s) <= now) begin_volleys(s);
}

int32_t hec_streams_done(struct hec_streams *s, int32_t *volley, double *part) {
    if (!s->ends.count || s->ends.item[0].at > s->now) return -1;
    const int32_t what = hec_agenda_take(&s->ends).what, device = what % s->devices;
    *volley = what / s->devices;
    struct volley *w = &s->volley[*volley];
    const int32_t port = last_port(s, w, device);
    if (s->begun_count > 1) serve(s, port);
    memcpy(part, w->held + port * s->volleys, (size_t)s->volleys * sizeof *part);
    w->told[device] = true;
    if (--w->open > 0) return device;
    if (s->begun_count > 1) serve_all(s); // The others had a part of each port until now.
    w->state = IDLE;
    list_begun(s);
    return device;
}
