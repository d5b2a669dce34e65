// Memory of a template or a rendering: taken piece by piece, freed at once.
#include <stdalign.h>
#include <stdlib.h>

#include "tools/prepare/jinja/inside.h"

struct arena_block {
    struct arena_block *before;
    size_t used, room;
    alignas(max_align_t) char at[];
};

void *arena_take(struct arena *arena, size_t bytes) {
    enum { BLOCK = 1 << 15, ALIGN = alignof(max_align_t) };
    if (bytes > arena->most) return NULL;
    bytes = (bytes + ALIGN - 1) / ALIGN * ALIGN;
    struct arena_block *block = arena->block;
    if (!block || block->room - block->used < bytes) {
        const size_t room = bytes > BLOCK ? bytes : BLOCK;
        if (room > arena->most - arena->taken) return NULL;
        block = malloc(sizeof *block + room);
        if (!block) return NULL;
        *block = (struct arena_block){.before = arena->block, .room = room};
        arena->block = block;
        arena->taken += room;
    }
    void *at = block->at + block->used;
    block->used += bytes;
    return at;
}

void arena_free(struct arena *arena) {
    while (arena->block) {
        struct arena_block *before = arena->block->before;
        free(arena->block);
        arena->block = before;
    }
    arena->taken = 0;
}
