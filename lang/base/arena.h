#ifndef HECATE_LANG_BASE_ARENA_H
#define HECATE_LANG_BASE_ARENA_H

#include <stddef.h>

// Memory that is freed all at once. One arena lives as long as one compilation: tree, names,
// checked program go into it and are never freed one by one. Zero-initialise to start.
struct hec_arena {
    struct hec_arena_block *newest;
};

// Returns `count` zeroed objects of `size` bytes, aligned for any type, valid until hec_arena_free.
// Never NULL: ends the process with status 70 when memory is exhausted.
void *hec_arena_alloc(struct hec_arena *arena, size_t count, size_t size);

// Returns a NUL-terminated copy of the `length` bytes at `text`.
char *hec_arena_copy(struct hec_arena *arena, const char *text, size_t length);

// Returns formatted text, NUL-terminated.
char *hec_arena_format(struct hec_arena *arena, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

// Frees everything and leaves an empty arena, ready for use.
void hec_arena_free(struct hec_arena *arena);

// Returns `memory`, as the C library gave it; where that is NULL ends the process with status 70.
void *hec_checked(void *memory);

#define HEC_NEW(arena, type) ((type *)hec_arena_alloc((arena), 1, sizeof(type)))

#endif
