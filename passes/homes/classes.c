// Classes of values that share one buffer of the arena: no two of them are live at once.
#include <assert.h>

#include "ir/core/kernel.h"
#include "passes/base/rewrite.h"
#include "passes/homes/homes.h"

int hec_homes_index(const struct hec_homes *p, MlirValue v) {
    const int index = hec_live_index(&p->live, v);
    assert(index >= 0);
    return index;
}

int hec_homes_root(struct hec_homes *p, int value) {
    struct hec_homes_value *placed = p->placed;
    while (placed[value].root != value) {
        placed[value].root = placed[placed[value].root].root;
        value = placed[value].root;
    }
    return value;
}

struct hec_home hec_homes_home(struct hec_homes *p, MlirValue value) {
    return p->placed[hec_homes_root(p, hec_homes_index(p, value))].home;
}

// Whether result `result` may be written over operand `i`, for all that this operand is.
static bool may_take(MlirOperation op, const struct hec_call *call, int i, int result) {
    if (hec_op_is(op, HEC_OP_fused)) return true; // Reads all inputs of an element, then writes.
    if (result >= call->results) return i >= call->first_input; // So does an epilogue.
    if (i < call->operands) return result == 0 && (hec_op_traits(op)->in_place >> i & 1);
    return result == 0 && i < call->first_input; // The operand that it adds to.
}

bool hec_may_reuse(MlirOperation op, MlirValue operand, MlirValue result) {
    if (!mlirTypeEqual(mlirValueGetType(operand), mlirValueGetType(result))) return false;
    const struct hec_call call = hec_call_of(op);
    bool reads = false;
    for (int i = 0; i < mlirOperationGetNumOperands(op); i++) {
        if (!mlirValueEqual(hec_operand(op, i), operand)) continue;
        if (!may_take(op, &call, i, (int)mlirOpResultGetResultNumber(result))) return false;
        reads = true;
    }
    return reads;
}

bool hec_may_lie_together(MlirOperation op, int made, int output) {
    const struct hec_call call = hec_call_of(op);
    return made == 0 && output >= call.results && hec_is_unused(hec_result(op, 0)) &&
           mlirTypeEqual(mlirValueGetType(hec_result(op, 0)),
                         mlirValueGetType(hec_result(op, output)));
}

// Operation k reads x for the last time and makes y: whether y may be written where x lies.
static bool hands_over(const struct hec_homes *p, int k, MlirValue x, MlirValue y) {
    const MlirOperation op = p->live.ops.item[k];
    if (!hec_op_is(op, HEC_OP_FOR)) return mlirValueIsAOpResult(y) && hec_may_reuse(op, x, y);
    const struct hec_for loop = hec_for_of(op);
    for (int i = 0; i < loop.carried; i++) {
        if (mlirValueEqual(y, hec_for_argument(&loop, i)))
            return mlirValueEqual(x, hec_for_init(&loop, i));
        if (mlirValueEqual(y, hec_result(op, i)))
            return mlirValueEqual(x, hec_for_yielded(&loop, i));
    }
    return false;
}

static bool is_conflict(const struct hec_homes *p, int a, int b) {
    const struct hec_live_value *x = &p->live.values.item[a], *y = &p->live.values.item[b];
    if (x->first > y->first) {
        const struct hec_live_value *swap = x;
        x = y, y = swap;
    }
    if (x->last < y->first) return false;
    const MlirOperation maker = hec_defining(x->value);
    if (x->first == y->first && !mlirOperationIsNull(maker) &&
        mlirOperationEqual(maker, hec_defining(y->value))) {
        const int i = (int)mlirOpResultGetResultNumber(x->value);
        const int j = (int)mlirOpResultGetResultNumber(y->value);
        return !hec_may_lie_together(maker, i, j) && !hec_may_lie_together(maker, j, i);
    }
    if (x->last == y->first && x->first < y->first)
        return !hands_over(p, x->last, x->value, y->value);
    return true;
}

bool hec_homes_join(struct hec_homes *p, MlirValue a, MlirValue b) {
    struct hec_homes_value *placed = p->placed;
    const int x = hec_homes_root(p, hec_homes_index(p, a)),
              y = hec_homes_root(p, hec_homes_index(p, b));
    if (x == y) return true;
    if (placed[x].pinned || placed[y].pinned) return false;
    int i = x;
    do {
        int j = y;
        do {
            if (is_conflict(p, i, j)) return false;
            j = placed[j].next;
        } while (j != y);
        i = placed[i].next;
    } while (i != x);
    placed[y].root = x;
    const int next = placed[x].next;
    placed[x].next = placed[y].next;
    placed[y].next = next;
    return true;
}
