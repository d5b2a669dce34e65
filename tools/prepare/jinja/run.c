// The state of a rendering: its first failure, and its bounds.
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tools/prepare/jinja/inside.h"

struct value run_fail(struct run *run, const char *format, ...) {
    char reason[512];
    va_list arguments;
    if (run->failed) return (struct value){.kind = VALUE_NONE};
    run->failed = true;
    va_start(arguments, format);
    vsnprintf(reason, sizeof reason, format, arguments);
    va_end(arguments);
    hrt_fail(run->error, "%s, line %d: %s", run->jinja->name, run->line, reason);
    return (struct value){.kind = VALUE_NONE};
}

bool run_pay(struct run *run, size_t amount) {
    if (run->failed) return false;
    run->work -= (int64_t)amount + 1;
    if (run->work < 0) run_fail(run, "the template takes too long");
    return !run->failed;
}

void *run_take(struct run *run, size_t bytes) {
    if (run->failed) return NULL;
    void *at = arena_take(&run->arena, bytes);
    if (!at) run_fail(run, "the template takes more than %d MiB of memory", RUN_MEMORY >> 20);
    return at;
}

void buffer_add(struct run *run, struct buffer *buffer, const char *at, size_t bytes) {
    if (bytes == 0 || !run_pay(run, bytes / 16)) return;
    if (buffer->room - buffer->bytes < bytes) {
        const size_t room =
            buffer->bytes + bytes > 2 * buffer->room ? buffer->bytes + bytes : 2 * buffer->room;
        char *grown = run_take(run, room);
        if (!grown) return;
        if (buffer->bytes) memcpy(grown, buffer->at, buffer->bytes);
        buffer->at = grown;
        buffer->room = room;
    }
    memcpy(buffer->at + buffer->bytes, at, bytes);
    buffer->bytes += bytes;
}
