// Growing arrays: doubling copies; the arena frees the old ones.
#include "lang/base/vec.h"

#include <string.h>

void *hec_vec_grow(struct hec_arena *arena, const void *items, int *room, size_t size) {
    const int room_before = *room;
    *room = room_before ? room_before * 2 : 8;
    void *grown = hec_arena_alloc(arena, (size_t)*room, size);
    if (room_before) memcpy(grown, items, (size_t)room_before * size);
    return grown;
}
