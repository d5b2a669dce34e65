// A walk over JSON that is known to be sound.
#include "passes/base/json_location.h"

#include <stdbool.h>
#include <string.h>

struct walk {
    const char *at;
    struct hec_json_location location;
};

static void step(struct walk *w) {
    if (!*w->at) return;
    w->location.column++;
    if (*w->at++ == '\n') w->location = (struct hec_json_location){w->location.line + 1, 1};
}

// Skips blanks and the separators of members.
static void skip_blanks(struct walk *w) {
    while (*w->at && strchr(" \t\r\n,:", *w->at)) step(w);
}

static void skip_string(struct walk *w) {
    step(w);
    while (*w->at && *w->at != '"') {
        if (*w->at == '\\') step(w);
        step(w);
    }
    step(w);
}

static void skip_value(struct walk *w) {
    int depth = 0;
    do {
        skip_blanks(w);
        if (*w->at == '"') {
            skip_string(w);
        } else if (*w->at && strchr("[{]}", *w->at)) {
            depth += *w->at == '[' || *w->at == '{' ? 1 : -1;
            step(w);
        } else {
            while (*w->at && !strchr(" \t\r\n,]}", *w->at)) step(w);
        }
    } while (depth > 0 && *w->at);
}

// Goes on to the value of `key`, of the object at `w`.
static bool enter(struct walk *w, const char *key) {
    if (*w->at != '{') return false;
    step(w);
    for (skip_blanks(w); *w->at == '"'; skip_blanks(w)) {
        const char *name = w->at + 1;
        skip_string(w);
        const size_t length = (size_t)(w->at - 1 - name);
        skip_blanks(w);
        if (strlen(key) == length && memcmp(name, key, length) == 0) return true;
        skip_value(w);
    }
    return false;
}

struct hec_json_location hec_json_find(const char *text, const char *const *path) {
    struct walk w = {text, {1, 1}};
    skip_blanks(&w);
    for (; *path; path++) {
        const struct hec_json_location object = w.location;
        if (!enter(&w, *path)) return object;
    }
    return w.location;
}
