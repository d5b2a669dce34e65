// Helpers for several passes that look at and change the IR, beyond MLIR's C API.
#ifndef HECATE_PASSES_BASE_REWRITE_H
#define HECATE_PASSES_BASE_REWRITE_H

#include "ir/core/op.h"

// Whether `v` may be used in `block`: it is defined there or in a block around it.
bool hec_visible(MlirValue v, MlirBlock block);

bool hec_is_unused(MlirValue v);
bool hec_is_used_once(MlirValue v); // By one operand of one operation.

// The operation in `block` that is `op` or holds it; null when `op` is not below `block`.
MlirOperation hec_ancestor_in(MlirBlock block, MlirOperation op);

// Clones `op` to where `b` inserts. Operands, in nested regions too, are replaced where `map`, from
// values to values, has them; the results of the clone are added to `map`. Returns the clone.
MlirOperation hec_clone_mapped(struct hec_builder *b, MlirOperation op, struct hec_map *map);

// A fetch of what `v` is stashed as in `slot`, at `layer` unless that is null. It belongs to what made `v`.
MlirValue hec_build_fetch(struct hec_builder *b, MlirValue v, MlirStringRef slot, MlirValue layer);

// Builds the loop anew without the carried values k for which drop[k]. Neither their results nor
// their arguments may have uses, except an argument in its own place of the yield.
MlirOperation hec_drop_carried(MlirOperation loop, const bool *drop);

// Merges equal pure operations and drops unused ones until nothing changes: the pass simplify.
void hec_simplify(MlirOperation module);

// Whether `op` costs next to nothing and gives the same, from the same operands, wherever it stands in
// forward and backward: parameters, constants, indices of layers.
bool hec_same_anywhere(MlirOperation op);

// The slots that `func` stashes to: adds the key of each to `stored`. And whether `op` only reads what
// was there when the function began, so that it can be done earlier.
void hec_find_stored(MlirOperation func, struct hec_map *stored);
bool hec_may_rise(const struct hec_map *stored, MlirOperation op);

static inline void *hec_map_find(const struct hec_map *map, MlirValue v) {
    return (void *)hec_map_get(map, v.ptr);
}
static inline void hec_map_put(struct hec_map *map, MlirValue v, const void *value) {
    *hec_map_at(map, v.ptr) = (intptr_t)value;
}

#endif
