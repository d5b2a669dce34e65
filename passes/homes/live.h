// Live ranges over @forward, then @backward, loops entered once.
//
// One walk numbers the operations in execution order, from 1. A loop has two numbers, that of its
// start and that of its end, where its yield reads and its results appear. A value from outside a
// loop that is read inside lives to the loop's end. So, a value needs its bytes from `first` to
// `last`, both included, and not in between: a value that a loop carries is two values, the argument at the
// start and the yielded one at the end.
#ifndef HECATE_PASSES_HOMES_LIVE_H
#define HECATE_PASSES_HOMES_LIVE_H

#include "ir/core/op.h"
#include "lang/base/vec.h"

struct hec_live_value {
    MlirValue value;
    int first, last; // Numbers of the operations that make it and read it last.
    int depth;       // Loops around its definition.
    int lives_in;    // The outermost loop inside which it is read but not made, or -1.
};

struct hec_live_loop {
    MlirOperation op;
    int start, end;
};

struct hec_live {
    struct hec_arena *arena;
    struct hec_map index; // Value -> its number plus 1.
    HEC_VEC(struct hec_live_value) values;
    HEC_VEC(MlirOperation) ops; // By number; the loop itself at its start and its end.
    HEC_VEC(int) outermost;     // By number: the outermost loop around, or -1.
    HEC_VEC(struct hec_live_loop) loops;
    int backward; // Number of the first operation of @backward; past all without one.
};

// Free with hec_live_free; the arena is the caller's.
void hec_live_find(struct hec_live *live, struct hec_arena *arena, MlirOperation module);
void hec_live_free(struct hec_live *live);

// The number of `v`; -1 when it is defined inside a moe.fused or an unknown function.
int hec_live_index(const struct hec_live *live, MlirValue v);

#endif
