// Hash tables of a tokenizer: names to ids, pairs of symbols to the merged one; and growing buffers.
#ifndef HECATE_RUNTIME_TOKENIZER_TABLE_H
#define HECATE_RUNTIME_TOKENIZER_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

// Hash of some bytes: of words, mostly, which are short.
static inline uint64_t hrt_experts_hash(const char *at, size_t bytes) {
    const uint64_t factor = 0x9e3779b97f4a7c15u;
    uint64_t hash = bytes * factor;
    for (; bytes >= 8; at += 8, bytes -= 8) {
        uint64_t word;
        memcpy(&word, at, 8);
        hash = (hash ^ word) * factor;
        hash ^= hash >> 32;
    }
    uint64_t word = 0;
    if (bytes >= 4) {
        uint32_t low, high;
        memcpy(&low, at, 4);
        memcpy(&high, at + bytes - 4, 4);
        word = low | (uint64_t)high << 32;
    } else if (bytes > 0) {
        word = (unsigned char)at[0] | (uint64_t)(unsigned char)at[bytes / 2] << 8 |
               (uint64_t)(unsigned char)at[bytes - 1] << 16;
    }
    hash = (hash ^ word) * factor;
    return hash ^ hash >> 29;
}

struct hrt_names {
    struct hrt_name *at; // [mask + 1], owned.
    char *text;          // All of them, owned.
    uint32_t mask;
    size_t bytes, room, count;
};

// Makes room for `count` names. False: no memory.
bool hrt_tokenizer_names_create(struct hrt_names *names, size_t count);
void hrt_tokenizer_names_free(struct hrt_names *names);
// Adds a name, or gives it another id. At most as many as there is room for. False: no memory.
bool hrt_tokenizer_names_add(struct hrt_names *names, const char *text, size_t bytes, int32_t id);
// The id of a name, -1 where it has none.
int32_t hrt_tokenizer_names_find(const struct hrt_names *names, const char *text, size_t bytes);

struct hrt_merge {
    uint64_t pair; // left << 32 | right; none where `id` is -1.
    int32_t rank, id;
};

struct hrt_merges {
    struct hrt_merge *at; // [mask + 1], owned.
    uint32_t mask;
};

bool hrt_tokenizer_merges_create(struct hrt_merges *merges, size_t count);
void hrt_tokenizer_merges_free(struct hrt_merges *merges);
// Adds the symbol that a pair merges into, or replaces it.
void hrt_tokenizer_merges_add(struct hrt_merges *merges, int32_t left, int32_t right, int32_t rank,
                              int32_t id);

static inline uint64_t hrt_pair(int32_t left, int32_t right) {
    return (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
}

// The result of merging a pair; NULL: it does not merge.
static inline const struct hrt_merge *hrt_merges_find(const struct hrt_merges *merges, int32_t left,
                                                      int32_t right) {
    const uint64_t pair = hrt_pair(left, right), hash = pair * 0x9e3779b97f4a7c15u;
    for (uint32_t i = (uint32_t)(hash >> 32);; i++) {
        const struct hrt_merge *merge = &merges->at[i & merges->mask];
        if (merge->id < 0) return NULL;
        if (merge->pair == pair) return merge;
    }
}

// Makes room for `count` elements of `element` bytes in *at, which has `*room`. False: no memory.
bool hrt_tokenizer_grow(void *at, size_t *room, size_t count, size_t element);

#endif
