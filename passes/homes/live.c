// Live ranges: one recursive walk.
#include "passes/homes/live.h"

#include <assert.h>

enum { DEPTH_MAX = 8 };

struct walk {
    struct hec_live *live;
    int depth;
    int loop[DEPTH_MAX]; // Around the current operation, outermost first.
};

int hec_live_index(const struct hec_live *live, MlirValue v) {
    return (int)hec_map_get(&live->index, v.ptr) - 1;
}

static int number(struct walk *w, MlirOperation op) {
    struct hec_live *live = w->live;
    HEC_PUSH(live->arena, &live->ops, op);
    HEC_PUSH(live->arena, &live->outermost, w->depth ? w->loop[0] : -1);
    return live->ops.count - 1;
}

static void define(struct walk *w, MlirValue v, int at) {
    struct hec_live *live = w->live;
    HEC_PUSH(live->arena, &live->values,
             (struct hec_live_value){
                 .value = v, .first = at, .last = at, .depth = w->depth, .lives_in = -1});
    *hec_map_at(&live->index, v.ptr) = live->values.count;
}

static void read(struct walk *w, MlirOperation op, int at) {
    for (int i = 0; i < mlirOperationGetNumOperands(op); i++) {
        const int v = hec_live_index(w->live, hec_operand(op, i));
        assert(v >= 0);
        struct hec_live_value *value = &w->live->values.item[v];
        value->last = at;
        if (w->depth > value->depth) value->lives_in = w->loop[value->depth];
    }
}

static void walk_block(struct walk *w, MlirBlock block);

static void walk_loop(struct walk *w, MlirOperation op) {
    const struct hec_for loop = hec_for_of(op);
    struct hec_live *live = w->live;
    const int index = live->loops.count;
    const int start = number(w, op);
    read(w, op, start);
    HEC_PUSH(live->arena, &live->loops, (struct hec_live_loop){op, start, start});
    assert(w->depth < DEPTH_MAX);
    w->loop[w->depth++] = index;
    for (int i = 0; i < mlirBlockGetNumArguments(loop.body); i++) {
        define(w, mlirBlockGetArgument(loop.body, i), start);
    }
    walk_block(w, loop.body);
    const int end = number(w, op);
    read(w, mlirBlockGetTerminator(loop.body), end);
    w->depth--;
    live->loops.item[index].end = end;
    for (int i = 0; i < loop.carried; i++) define(w, hec_result(op, i), end);
}

static void walk_block(struct walk *w, MlirBlock block) {
    HEC_EACH_IN (op, block) {
        if (hec_op_is(op, HEC_OP_SCF_YIELD)) return;
        if (hec_op_is(op, HEC_OP_FOR)) {
            walk_loop(w, op);
            continue;
        }
        const int at = number(w, op);
        read(w, op, at);
        for (int i = 0; i < mlirOperationGetNumResults(op); i++) define(w, hec_result(op, i), at);
    }
}

void hec_live_find(struct hec_live *live, struct hec_arena *arena, MlirOperation module) {
    static const char *const entry[] = {"forward", "backward"};
    *live = (struct hec_live){.arena = arena};
    struct walk w = {.live = live};
    number(&w, module); // Number 0: before everything.
    for (int e = 0; e < 2; e++) {
        if (e == 1) live->backward = live->ops.count;
        const MlirOperation func = hec_find_symbol(module, HEC_STR(entry[e]));
        if (!hec_op_is(func, HEC_OP_FUNC)) continue;
        const MlirBlock body = hec_func_body(func);
        for (int i = 0; i < mlirBlockGetNumArguments(body); i++) {
            define(&w, mlirBlockGetArgument(body, i), live->ops.count - 1);
        }
        walk_block(&w, body);
    }
    for (int i = 0; i < live->values.count; i++) {
        struct hec_live_value *value = &live->values.item[i];
        if (value->lives_in < 0) continue;
        const int end = live->loops.item[value->lives_in].end;
        if (end > value->last) value->last = end;
    }
}

void hec_live_free(struct hec_live *live) {
    hec_map_free(&live->index);
}
