// text_print.c: printing and comparing text forms, into memory of the caller.
#include "runtime/plan/text.h"

struct printer {
    char *out;
    size_t room;
    size_t length;
};

static void put_char(struct printer *p, char c) {
    if (p->length + 1 < p->room) p->out[p->length] = c;
    p->length++;
}

static void put_text(struct printer *p, const char *text) {
    while (*text) put_char(p, *text++);
}

static void put_number(struct printer *p, int64_t number) {
    char digits[20];
    int32_t count = 0;
    uint64_t rest = number < 0 ? -(uint64_t)number : (uint64_t)number;
    if (number < 0) put_char(p, '-');
    do digits[count++] = (char)('0' + rest % 10);
    while ((rest /= 10) > 0);
    while (count > 0) put_char(p, digits[--count]);
}

static size_t finish(struct printer *p) {
    if (p->room > 0) p->out[p->length < p->room ? p->length : p->room - 1] = 0;
    return p->length;
}

static void put_field(struct printer *p, const char *name, int64_t number) {
    put_char(p, ' ');
    put_text(p, name);
    put_char(p, '=');
    put_number(p, number);
}

static void put_key(struct printer *p, int64_t key) {
    put_number(p, key);
    put_char(p, ':');
}

static void put_item(struct printer *p, int64_t number) {
    put_char(p, ' ');
    put_number(p, number);
}

size_t hpl_print_topology(const struct hpl_topology *topology, char *out, size_t room) {
    struct printer p = {out, room, 0};
    put_text(&p, "topology");
    put_field(&p, "nodes", topology->nodes);
    put_field(&p, "devices", topology->devices);
    for (int32_t n = 0; n < topology->nodes; n++) {
        put_char(&p, '\n');
        put_key(&p, n);
        for (int32_t d = topology->first[n]; d < topology->first[n + 1]; d++) {
            put_item(&p, topology->speed[d]);
        }
    }
    put_char(&p, '\n');
    return finish(&p);
}

size_t hpl_print_plan(const struct hpl_plan *plan, char *out, size_t room) {
    struct printer p = {out, room, 0};
    put_text(&p, "plan");
    put_field(&p, "experts", plan->experts);
    for (int32_t e = 0; e < plan->experts; e++) {
        put_char(&p, '\n');
        put_key(&p, e);
        for (int32_t k = plan->first[e]; k < plan->first[e + 1]; k++) put_item(&p, plan->holder[k]);
    }
    put_char(&p, '\n');
    return finish(&p);
}

size_t hpl_print_loads(const struct hpl_loads *loads, char *out, size_t room) {
    struct printer p = {out, room, 0};
    put_text(&p, "loads");
    put_field(&p, "devices", loads->devices);
    put_field(&p, "experts", loads->experts);
    for (int32_t d = 0; d < loads->devices; d++) {
        put_char(&p, '\n');
        put_key(&p, d);
        for (int32_t e = 0; e < loads->experts; e++) {
            put_item(&p, loads->rows[(int64_t)d * loads->experts + e]);
        }
    }
    put_char(&p, '\n');
    return finish(&p);
}

size_t hpl_print_schedule(const struct hpl_schedule *schedule, char *out, size_t room) {
    struct printer p = {out, room, 0};
    put_text(&p, "schedule");
    put_field(&p, "segments", schedule->segments);
    put_field(&p, "transfers", schedule->count);
    for (int32_t i = 0; i < schedule->count; i++) {
        const struct hpl_transfer *t = &schedule->transfer[i];
        put_char(&p, '\n');
        put_key(&p, i);
        put_item(&p, t->expert);
        put_char(&p, '.');
        put_number(&p, t->segment);
        put_item(&p, t->from);
        put_char(&p, '>');
        put_number(&p, t->to);
        put_item(&p, t->round);
    }
    put_char(&p, '\n');
    return finish(&p);
}

size_t hpl_print_route(const struct hpl_plan *plan, int32_t rank, const uint32_t *rows, char *out,
                       size_t room) {
    struct printer p = {out, room, 0};
    put_text(&p, "route");
    put_field(&p, "rank", rank);
    put_field(&p, "experts", plan->experts);
    for (int32_t e = 0; e < plan->experts; e++) {
        put_char(&p, '\n');
        put_key(&p, e);
        for (int32_t k = plan->first[e]; k < plan->first[e + 1]; k++) {
            put_item(&p, plan->holder[k]);
            put_char(&p, '=');
            put_number(&p, rows[k]);
        }
    }
    put_char(&p, '\n');
    return finish(&p);
}

// A line, without its end.
struct line {
    const char *at;
    size_t length;
};

static bool next_line(const char **text, struct line *line) {
    if (!**text) return false;
    line->at = *text;
    for (line->length = 0; line->at[line->length] && line->at[line->length] != '\n';) {
        line->length++;
    }
    *text = line->at + line->length + (line->at[line->length] == '\n');
    return true;
}

static bool same(struct line a, struct line b) {
    if (a.length != b.length) return false;
    for (size_t i = 0; i < a.length; i++) {
        if (a.at[i] != b.at[i]) return false;
    }
    return true;
}

// The line's key: what stands before its colon, or the whole line.
static struct line key_of(struct line line) {
    size_t length = 0;
    while (length < line.length && line.at[length] != ':') length++;
    return (struct line){line.at, length};
}

// The line of `text` with the key of `wanted`. Printed forms list keys in one order, so the search
// goes on from where the last one ended, and begins anew once.
static bool find_key(const char *text, const char **from, struct line wanted, struct line *found) {
    const char *start = *from;
    for (int pass = 0; pass < 2; pass++) {
        const char *at = pass == 0 ? start : text;
        while (next_line(&at, found)) {
            if (!same(key_of(*found), key_of(wanted))) continue;
            *from = at;
            return true;
        }
    }
    return false;
}

static void put_line(struct printer *p, const char *mark, struct line line) {
    put_text(p, mark);
    for (size_t i = 0; i < line.length; i++) put_char(p, line.at[i]);
    put_char(p, '\n');
}

size_t hpl_text_diff(const char *a, const char *b, char *out, size_t room) {
    struct printer p = {out, room, 0};
    struct line line, other;
    const char *in_b = b, *in_a = a;
    for (const char *at = a; next_line(&at, &line);) {
        const bool found = find_key(b, &in_b, line, &other);
        if (found && same(line, other)) continue;
        put_line(&p, "- ", line);
        if (found) put_line(&p, "+ ", other);
    }
    for (const char *at = b; next_line(&at, &line);) {
        if (!find_key(a, &in_a, line, &other)) put_line(&p, "+ ", line);
    }
    return finish(&p);
}
