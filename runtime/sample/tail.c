// Printing up to a stop text, which may come in pieces.
#include "runtime/sample/tail.h"

#include <stdlib.h>
#include <string.h>

static bool hold(struct hrt_tail *tail, const char *text, size_t bytes) {
    if (tail->bytes + bytes > tail->room) {
        const size_t room = 2 * (tail->bytes + bytes);
        char *held = realloc(tail->held, room);
        if (!held) return false;
        tail->held = held;
        tail->room = room;
    }
    if (bytes) memcpy(tail->held + tail->bytes, text, bytes);
    tail->bytes += bytes;
    return true;
}

static bool print(struct hrt_tail *tail, size_t bytes) {
    if (bytes && fwrite(tail->held, 1, bytes, tail->out) != bytes) return false;
    tail->bytes -= bytes;
    if (tail->bytes) memmove(tail->held, tail->held + bytes, tail->bytes);
    return fflush(tail->out) == 0;
}

// How many bytes come before `stop`, or before its begin at the end.
static size_t before_stop(struct hrt_tail *tail) {
    const size_t length = tail->stop ? strlen(tail->stop) : 0;
    if (!length) return tail->bytes;
    for (size_t i = 0; i < tail->bytes; i++) {
        const size_t left = tail->bytes - i, common = left < length ? left : length;
        if (memcmp(tail->held + i, tail->stop, common) != 0) continue;
        tail->ended = common == length;
        return i;
    }
    return tail->bytes;
}

bool hrt_sample_tail_add(struct hrt_tail *tail, const char *text, size_t bytes) {
    return hold(tail, text, bytes) && print(tail, before_stop(tail));
}

bool hrt_sample_tail_end(struct hrt_tail *tail) {
    const bool printed = tail->ended || print(tail, tail->bytes);
    free(tail->held);
    tail->held = NULL;
    return printed;
}
