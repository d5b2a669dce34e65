// text_read.c: reading text forms back. Nothing in the text is trusted.
#include "runtime/plan/text.h"

struct reader {
    const char *at;
    int32_t line;
    bool failed;
};

static bool is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\r';
}

static void skip_blanks(struct reader *r) {
    while (is_blank(*r->at)) r->at++;
}

static bool at_line_end(struct reader *r) {
    skip_blanks(r);
    return *r->at == '\n' || *r->at == 0;
}

// To the next line with something on it. False at the end of the text.
static bool next_line(struct reader *r) {
    for (;;) {
        skip_blanks(r);
        if (*r->at == '#') {
            while (*r->at && *r->at != '\n') r->at++;
        }
        if (*r->at != '\n') return *r->at != 0;
        r->at++;
        r->line++;
    }
}

static bool take(struct reader *r, const char *text) {
    const char *at = r->at;
    for (; *text; text++, at++) {
        if (*at != *text) {
            r->failed = true;
            return false;
        }
    }
    r->at = at;
    return true;
}

static int64_t take_number(struct reader *r, int64_t most) {
    int64_t number = 0;
    const char *begin = r->at;
    for (; *r->at >= '0' && *r->at <= '9'; r->at++) {
        number = number * 10 + (*r->at - '0');
        if (number > most) r->failed = true;
        if (r->failed) return 0;
    }
    if (r->at == begin) r->failed = true;
    return number;
}

static int32_t take_int(struct reader *r) {
    return (int32_t)take_number(r, INT32_MAX);
}

// " name=NUMBER" of a head line.
static int32_t take_field(struct reader *r, const char *name) {
    skip_blanks(r);
    take(r, name);
    if (!r->failed) take(r, "=");
    return r->failed ? 0 : take_int(r);
}

static int32_t take_key(struct reader *r, int32_t below) {
    const int32_t key = take_int(r);
    if (!r->failed) take(r, ":");
    if (key >= below) r->failed = true;
    return key;
}

static void begin(struct reader *r, const char *text, const char *form) {
    *r = (struct reader){.at = text, .line = 1};
    if (!next_line(r) || !take(r, form)) r->failed = true;
}

static void end_head(struct reader *r) {
    if (!r->failed && !at_line_end(r)) r->failed = true;
}

static enum hpl_status finish(const struct reader *r, int32_t *line, enum hpl_status status) {
    *line = r->line;
    return r->failed ? HPL_BAD_TEXT : status;
}

enum hpl_status hpl_read_topology(const char *text, const struct hpl_topology_memory *memory,
                                  struct hpl_topology *topology, int32_t *line) {
    struct reader r;
    begin(&r, text, "topology");
    const int32_t nodes = take_field(&r, "nodes"), devices = take_field(&r, "devices");
    end_head(&r);
    if (r.failed) return finish(&r, line, HPL_OK);
    if (devices > memory->capacity || nodes > devices) return finish(&r, line, HPL_NO_ROOM);
    int32_t d = 0;
    for (int32_t n = 0; n < nodes && !r.failed; n++) { // Devices are numbered by node: in order.
        if (!next_line(&r) || take_key(&r, nodes) != n) r.failed = true;
        memory->first[n] = d;
        while (!r.failed && !at_line_end(&r)) {
            if (d == devices)
                r.failed = true;
            else
                memory->node[d] = n, memory->speed[d++] = take_int(&r);
        }
        if (d == memory->first[n]) r.failed = true; // A node without devices.
    }
    if (!r.failed && (d != devices || next_line(&r))) r.failed = true;
    if (r.failed) return finish(&r, line, HPL_OK);
    memory->first[nodes] = d;
    *topology = (struct hpl_topology){devices, nodes, memory->first, memory->node, memory->speed};
    return finish(&r, line, HPL_OK);
}

// Puts `value` into the ascending items from `from` on; false when it is there already.
static bool insert(int32_t *items, int32_t from, int32_t to, int32_t value) {
    int32_t at = to;
    while (at > from && items[at - 1] > value) at--;
    if (at > from && items[at - 1] == value) return false;
    for (int32_t i = to; i > at; i--) items[i] = items[i - 1];
    items[at] = value;
    return true;
}

// Lines may come in any order, holders are kept in that of the experts: so the text is gone over
// once for each expert that is out of order, and once if none is.
static bool seek_key(struct reader *r, struct reader body, int32_t key) {
    for (int pass = 0; pass < 2; pass++) {
        if (pass == 1) *r = body;
        while (next_line(r)) {
            struct reader ahead = *r;
            if (take_int(&ahead) == key && !ahead.failed && take(&ahead, ":")) {
                *r = ahead;
                return true;
            }
            while (*r->at && *r->at != '\n') r->at++;
        }
    }
    return false;
}

static int32_t count_lines(struct reader r) {
    int32_t lines = 0;
    while (next_line(&r)) {
        lines++;
        while (*r.at && *r.at != '\n') r.at++;
    }
    return lines;
}

enum hpl_status hpl_read_plan(const char *text, int32_t experts_max, struct hpl_plan *plan,
                              int32_t *line) {
    struct reader r;
    begin(&r, text, "plan");
    plan->experts = take_field(&r, "experts");
    end_head(&r);
    if (!r.failed && plan->experts > experts_max) return finish(&r, line, HPL_NO_ROOM);
    if (r.failed || count_lines(r) != plan->experts) r.failed = true;
    const struct reader body = r;
    int32_t holders = 0;
    for (int32_t e = 0; e < plan->experts && !r.failed; e++) {
        plan->first[e] = holders;
        if (!seek_key(&r, body, e)) r.failed = true;
        while (!r.failed && !at_line_end(&r)) {
            const int32_t device = take_int(&r);
            if (r.failed) break;
            if (holders == plan->capacity) return finish(&r, line, HPL_NO_ROOM);
            if (!insert(plan->holder, plan->first[e], holders++, device)) r.failed = true;
        }
        plan->first[e + 1] = holders;
    }
    return finish(&r, line, HPL_OK);
}

enum hpl_status hpl_read_loads(const char *text, uint32_t *rows, int64_t capacity,
                               struct hpl_loads *loads, int32_t *line) {
    struct reader r;
    begin(&r, text, "loads");
    const int32_t devices = take_field(&r, "devices"), experts = take_field(&r, "experts");
    end_head(&r);
    if (!r.failed && (int64_t)devices * experts > capacity) return finish(&r, line, HPL_NO_ROOM);
    if (r.failed || count_lines(r) != devices) r.failed = true;
    const struct reader body = r;
    for (int32_t d = 0; d < devices && !r.failed; d++) {
        if (!seek_key(&r, body, d)) r.failed = true;
        for (int32_t e = 0; e < experts && !r.failed; e++) {
            skip_blanks(&r);
            rows[(int64_t)d * experts + e] = (uint32_t)take_number(&r, UINT32_MAX);
        }
        if (!r.failed && !at_line_end(&r)) r.failed = true;
    }
    *loads = (struct hpl_loads){devices, experts, rows};
    return finish(&r, line, HPL_OK);
}

enum hpl_status hpl_read_schedule(const char *text, struct hpl_schedule *schedule, int32_t *line) {
    struct reader r;
    begin(&r, text, "schedule");
    schedule->segments = take_field(&r, "segments");
    schedule->count = take_field(&r, "transfers");
    end_head(&r);
    if (!r.failed && schedule->count > schedule->capacity) return finish(&r, line, HPL_NO_ROOM);
    for (int32_t i = 0; i < schedule->count && !r.failed; i++) { // Their order is what they mean.
        struct hpl_transfer *t = &schedule->transfer[i];
        if (!next_line(&r) || take_key(&r, schedule->count) != i) r.failed = true;
        skip_blanks(&r);
        t->expert = take_int(&r);
        if (!r.failed) take(&r, ".");
        t->segment = take_int(&r);
        skip_blanks(&r);
        t->from = take_int(&r);
        if (!r.failed) take(&r, ">");
        t->to = take_int(&r);
        skip_blanks(&r);
        t->round = take_int(&r);
        if (!r.failed && !at_line_end(&r)) r.failed = true;
    }
    if (!r.failed && next_line(&r)) r.failed = true;
    return finish(&r, line, HPL_OK);
}

enum hpl_status hpl_read_route(const char *text, const struct hpl_plan *plan, int32_t *rank,
                               uint32_t *rows, int32_t *line) {
    struct reader r;
    begin(&r, text, "route");
    *rank = take_field(&r, "rank");
    if (take_field(&r, "experts") != plan->experts) r.failed = true;
    end_head(&r);
    if (r.failed || count_lines(r) != plan->experts) r.failed = true;
    const struct reader body = r;
    for (int32_t e = 0; e < plan->experts && !r.failed; e++) {
        if (!seek_key(&r, body, e)) r.failed = true;
        for (int32_t k = plan->first[e]; k < plan->first[e + 1] && !r.failed; k++) {
            skip_blanks(&r);
            if (take_int(&r) != plan->holder[k]) r.failed = true;
            if (!r.failed) take(&r, "=");
            rows[k] = (uint32_t)take_number(&r, UINT32_MAX);
        }
        if (!r.failed && !at_line_end(&r)) r.failed = true;
    }
    return finish(&r, line, HPL_OK);
}
