// Open addressing, at most half full.
#include "runtime/tokenizer/table.h"

#include <assert.h>
#include <stdlib.h>

struct hrt_name {
    uint32_t hash, at, bytes;
    int32_t id; // -1: nothing here.
};

bool hrt_tokenizer_grow(void *at, size_t *room, size_t count, size_t element) {
    if (count <= *room) return true;
    size_t wanted = *room * 2 > 64 ? *room * 2 : 64;
    if (wanted < count) wanted = count;
    void *old, *grown;
    memcpy(&old, at, sizeof old);
    grown = realloc(old, wanted * element);
    if (!grown) return false;
    memcpy(at, &grown, sizeof grown);
    *room = wanted;
    return true;
}

static uint32_t slots(size_t count) {
    uint32_t slots = 64;
    while (slots < 2 * count) slots *= 2;
    return slots;
}

bool hrt_tokenizer_names_create(struct hrt_names *names, size_t count) {
    const uint32_t room = slots(count);
    *names = (struct hrt_names){.mask = room - 1, .at = malloc(room * sizeof *names->at)};
    for (uint32_t i = 0; names->at && i < room; i++) names->at[i].id = -1;
    return names->at;
}

void hrt_tokenizer_names_free(struct hrt_names *names) {
    free(names->at);
    free(names->text);
}

static struct hrt_name *find(const struct hrt_names *names, const char *text, size_t bytes) {
    const uint32_t hash = (uint32_t)hrt_experts_hash(text, bytes);
    for (uint32_t i = hash;; i++) {
        struct hrt_name *name = &names->at[i & names->mask];
        const bool same = name->id >= 0 && name->hash == hash && name->bytes == bytes &&
                          memcmp(names->text + name->at, text, bytes) == 0;
        if (same || name->id < 0) return name;
    }
}

bool hrt_tokenizer_names_add(struct hrt_names *names, const char *text, size_t bytes, int32_t id) {
    struct hrt_name *name = find(names, text, bytes);
    if (name->id < 0) {
        assert(2 * ++names->count <= (size_t)names->mask + 1);
        if (!hrt_tokenizer_grow(&names->text, &names->room, names->bytes + bytes + 1, 1))
            return false;
        *name = (struct hrt_name){.hash = (uint32_t)hrt_experts_hash(text, bytes),
                                  .at = (uint32_t)names->bytes,
                                  .bytes = (uint32_t)bytes};
        memcpy(names->text + names->bytes, text, bytes);
        names->bytes += bytes;
    }
    name->id = id;
    return true;
}

int32_t hrt_tokenizer_names_find(const struct hrt_names *names, const char *text, size_t bytes) {
    return find(names, text, bytes)->id;
}

bool hrt_tokenizer_merges_create(struct hrt_merges *merges, size_t count) {
    const uint32_t room = slots(count);
    *merges = (struct hrt_merges){.mask = room - 1, .at = malloc(room * sizeof *merges->at)};
    for (uint32_t i = 0; merges->at && i < room; i++) merges->at[i] = (struct hrt_merge){.id = -1};
    return merges->at;
}

void hrt_tokenizer_merges_free(struct hrt_merges *merges) {
    free(merges->at);
}

void hrt_tokenizer_merges_add(struct hrt_merges *merges, int32_t left, int32_t right, int32_t rank,
                              int32_t id) {
    const uint64_t pair = hrt_pair(left, right), hash = pair * 0x9e3779b97f4a7c15u;
    uint32_t i = (uint32_t)(hash >> 32);
    while (merges->at[i & merges->mask].id >= 0 && merges->at[i & merges->mask].pair != pair) i++;
    merges->at[i & merges->mask] = (struct hrt_merge){pair, rank, id};
}
