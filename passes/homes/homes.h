// Shared by the files of place-buffers. The pass itself is place_buffers.c.
#ifndef HECATE_PASSES_HOMES_HOMES_H
#define HECATE_PASSES_HOMES_HOMES_H

#include "ir/core/home.h"
#include "ir/target/target.h"
#include "passes/homes/live.h"

// `bytes` and padding to a multiple of the target's alignment.
static inline int64_t hec_aligned(const struct hec_target *target, int64_t bytes) {
    return (bytes + target->align_bytes - 1) / target->align_bytes * target->align_bytes;
}

// Elements that parameters begin at a multiple of, as many as are aligned in the smallest type that one is
// stored in. `rounded`: some have a copy in bf16, at the same offset in elements.
static inline int64_t hec_params_align(const struct hec_target *target, bool rounded) {
    return target->align_bytes / (rounded ? 2 : 4);
}

// A value and its class: values that share one buffer of the arena.
struct hec_homes_value {
    struct hec_home home; // For an arena class: at its root.
    bool pinned; // Lives elsewhere, or in a given row of a slot; not in a class of the arena.
    bool adds;   // Made by adding to the gradient that is there.
    int root;    // Union-find.
    int next;    // Ring of the class's members.
};

struct hec_slot {
    MlirOperation op;
    MlirStringRef name;
    int64_t stride, rows; // Bytes from row to row; how many rows.
    int first, last;      // Live range of the whole slot; last < 0: never used.
    int64_t offset;
    bool observed;
    bool kept; // One @forward leaves it for the next one (cache-keys).
};

// A change of the module without which a value has no home: `user`'s operand `index` reads a copy
// made before `before`; or, with `alias`, the stash `user` goes and fetches of its slot read
// `alias`.
struct hec_repair {
    MlirOperation user, before;
    int index;
    bool alias;
    struct hec_home home;
};

struct hec_homes {
    MlirOperation module;
    const struct hec_target *target;
    struct hec_arena arena;
    struct hec_live live;
    struct hec_homes_value *placed; // By number of the value.
    HEC_VEC(struct hec_slot) slots;
    HEC_VEC(struct hec_repair) repairs;
    int64_t arena_bytes;
    bool sound;     // False once something was reported.
    bool new_homes; // No result takes the buffer of an operand.
};

// ---- classes.c

int hec_homes_index(const struct hec_homes *homes, MlirValue value); // Its number.
int hec_homes_root(struct hec_homes *homes, int value);
struct hec_home hec_homes_home(struct hec_homes *homes, MlirValue value);

// Lets `a` and `b` share a buffer of the arena. False when they cannot.
bool hec_homes_join(struct hec_homes *homes, MlirValue a, MlirValue b);

// Whether `op` may write `result` over its operand `operand`, element by element.
bool hec_may_reuse(MlirOperation op, MlirValue operand, MlirValue result);

// Whether `output`, a result of the epilogue of `op`, may lie where result `made` does: where a GEMM's
// result only its epilogue reads.
bool hec_may_lie_together(MlirOperation op, int made, int output);

// ---- homes.c

// Decides every home but the offsets in the arena. Leaves repairs when the module must change
// first.
void hec_homes_decide(struct hec_homes *homes);
void hec_homes_find_slots(struct hec_homes *homes); // All moe.slot, with the rows they declare.
struct hec_slot *hec_homes_slot(struct hec_homes *homes,
                                MlirStringRef name); // NULL when unknown.

// ---- repair.c
void hec_homes_repair(struct hec_homes *homes);

// ---- offsets.c

// Gives slots and classes of the arena their offsets; sets arena_bytes.
void hec_homes_offsets(struct hec_homes *homes);

// The live range of every slot, from the homes in it.
void hec_homes_slot_lives(struct hec_homes *homes);

// ---- layout.c

// Sets layout, matrix, elements and offset of every moe.param, chunk_elements and offset of every
// moe.set, the module's hecate.param_elements, from the homes of gradients, and `layout` of every call with
// weights. Reports weights of experts that no kernel reads as they lie.
void hec_homes_parameters(struct hec_homes *homes);

// ---- units.c

// With parallel.dense = shard: sets unit_places of everything that comes in units, and hecate.unit_bytes. The module
// has its layouts.
void hec_homes_units(MlirOperation module);

#endif
