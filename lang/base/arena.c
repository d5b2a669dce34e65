// Arena: a list of blocks, newest first; allocation moves a mark inside the newest.
#include "lang/base/arena.h"

#include <assert.h>
#include <stdalign.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct hec_arena_block {
    struct hec_arena_block *older;
    size_t used;
    size_t size;
    alignas(max_align_t) unsigned char bytes[];
};

static const size_t block_bytes = 64 * 1024; // A small model's tree fits into one block.

static _Noreturn void out_of_memory(size_t bytes) {
    fprintf(stderr, "hecatec: out of memory (asked for %zu bytes)\n", bytes);
    exit(70);
}

void *hec_checked(void *memory) {
    if (memory) return memory;
    fputs("hecatec: out of memory\n", stderr);
    exit(70);
}

static struct hec_arena_block *add_block(struct hec_arena *arena, size_t bytes) {
    const size_t size = bytes > block_bytes ? bytes : block_bytes;
    struct hec_arena_block *block = calloc(1, sizeof *block + size);
    if (!block) out_of_memory(size);
    block->older = arena->newest;
    block->size = size;
    arena->newest = block;
    return block;
}

void *hec_arena_alloc(struct hec_arena *arena, size_t count, size_t size) {
    const size_t align = alignof(max_align_t);
    if (size != 0 && count > (SIZE_MAX / 2) / size) out_of_memory(SIZE_MAX);
    const size_t bytes = (count * size + align - 1) / align * align;

    struct hec_arena_block *block = arena->newest;
    if (!block || block->size - block->used < bytes) block = add_block(arena, bytes);
    void *result = block->bytes + block->used;
    block->used += bytes;
    return result;
}

char *hec_arena_copy(struct hec_arena *arena, const char *text, size_t length) {
    char *copy = hec_arena_alloc(arena, length + 1, 1);
    return length ? memcpy(copy, text, length) : copy; // Text of no length may lie nowhere.
}

char *hec_arena_format(struct hec_arena *arena, const char *format, ...) {
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    const int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    assert(length >= 0);
    char *text = hec_arena_alloc(arena, (size_t)length + 1, 1);
    vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    return text;
}

void hec_arena_free(struct hec_arena *arena) {
    while (arena->newest) {
        struct hec_arena_block *older = arena->newest->older;
        free(arena->newest);
        arena->newest = older;
    }
}
