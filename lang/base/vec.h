// Growing arrays in an arena.
//
//   HEC_VEC(int) sizes = {0};
//   HEC_PUSH(arena, &sizes, 42);
//   for (int i = 0; i < sizes.count; i++) use(sizes.item[i]);
#ifndef HECATE_LANG_BASE_VEC_H
#define HECATE_LANG_BASE_VEC_H

#include <stddef.h>

#include "lang/base/arena.h"

#define HEC_VEC(type)                                                                              \
    struct {                                                                                       \
        type *item;                                                                                \
        int count;                                                                                 \
        int room;                                                                                  \
    }

// Appends `value`. The array may move: keep indices, not pointers, while it grows.
#define HEC_PUSH(arena, vec, ...)                                                                  \
    do {                                                                                           \
        if ((vec)->count == (vec)->room)                                                           \
            (vec)->item = hec_vec_grow((arena), (vec)->item, &(vec)->room, sizeof *(vec)->item);   \
        (vec)->item[(vec)->count++] = (__VA_ARGS__);                                               \
    } while (0)

// Returns a copy of `items` with twice the room, and updates `room`.
void *hec_vec_grow(struct hec_arena *arena, const void *items, int *room, size_t size);

#endif
