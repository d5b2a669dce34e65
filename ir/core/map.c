// A hash table from pointers to pointer-sized values, and lists of operations.
#include "ir/core/ir.h"

#include "lang/base/arena.h"

#include <assert.h>
#include <stdlib.h>

static int home_of(const struct hec_map *map, const void *key) {
    const uint64_t mixed = ((uintptr_t)key >> 3) * UINT64_C(0x9E3779B97F4A7C15);
    int at = (int)((mixed >> 20) & (uint64_t)(map->capacity - 1));
    while (map->key[at] && map->key[at] != key) at = (at + 1) & (map->capacity - 1);
    return at;
}

static void grow(struct hec_map *map) {
    const struct hec_map old = *map;
    map->capacity = old.capacity ? 2 * old.capacity : 64;
    map->key = hec_checked(calloc((size_t)map->capacity, sizeof *map->key));
    map->value = hec_checked(calloc((size_t)map->capacity, sizeof *map->value));
    for (int i = 0; i < old.capacity; i++) {
        if (!old.key[i]) continue;
        const int at = home_of(map, old.key[i]);
        map->key[at] = old.key[i];
        map->value[at] = old.value[i];
    }
    free(old.key);
    free(old.value);
}

intptr_t *hec_map_at(struct hec_map *map, const void *key) {
    assert(key);
    if (2 * (map->count + 1) > map->capacity) grow(map);
    const int at = home_of(map, key);
    if (!map->key[at]) {
        map->key[at] = key;
        map->count++;
    }
    return &map->value[at];
}

intptr_t hec_map_get(const struct hec_map *map, const void *key) {
    if (!map->capacity || !key) return 0;
    const int at = home_of(map, key);
    return map->key[at] ? map->value[at] : 0;
}

void hec_map_free(struct hec_map *map) {
    free(map->key);
    free(map->value);
    *map = (struct hec_map){0};
}

void hec_ops_push(struct hec_ops *ops, MlirOperation op) {
    if (ops->count == ops->capacity) {
        ops->capacity = ops->capacity ? 2 * ops->capacity : 256;
        ops->op = hec_checked(realloc(ops->op, sizeof *ops->op * (size_t)ops->capacity));
    }
    ops->op[ops->count++] = op;
}

static MlirWalkResult collect(MlirOperation op, void *ops) {
    hec_ops_push(ops, op);
    return MlirWalkResultAdvance;
}

struct hec_ops hec_ops_below(MlirOperation root) {
    struct hec_ops ops = {0};
    mlirOperationWalk(root, collect, &ops, MlirWalkPreOrder);
    return ops;
}

struct hec_ops hec_ops_in(MlirBlock block) {
    struct hec_ops ops = {0};
    HEC_EACH_IN (op, block) {
        hec_ops_push(&ops, op);
    }
    return ops;
}

bool hec_each_next(struct hec_each *each) {
    if ((each->begun && !each->ended) || each->begun == each->ops.count) return false;
    each->begun++;
    each->ended = false;
    return true;
}

void hec_each_free(struct hec_each *each) {
    free(each->ops.op);
}
