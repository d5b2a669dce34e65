// The order in which a program runs its operations, and the numbers of its indices.
#include "passes/base/walk.h"

int64_t hec_walk_number(const struct hec_walk *walk, MlirValue index) {
    const intptr_t known = hec_map_get(&walk->number, index.ptr);
    return known ? known - 1 : 0;
}

static void set_number(struct hec_walk *walk, MlirValue index, int64_t number) {
    *hec_map_at(&walk->number, index.ptr) = number + 1;
}

// False when `op` computes no index.
static bool run_index(struct hec_walk *walk, MlirOperation op) {
    int64_t number[2] = {0};
    for (int i = 0; i < 2 && i < mlirOperationGetNumOperands(op); i++)
        number[i] = hec_walk_number(walk, hec_operand(op, i));
    switch (hec_op_of(op)) {
    case HEC_OP_CONSTANT:
        number[0] = hec_get_int(op, "value");
        break;
    case HEC_OP_ADDI:
        number[0] = (int64_t)((uint64_t)number[0] + (uint64_t)number[1]);
        break;
    case HEC_OP_SUBI:
        number[0] = (int64_t)((uint64_t)number[0] - (uint64_t)number[1]);
        break;
    case HEC_OP_waves:
        number[0] = walk->waves;
        break;
    case HEC_OP_overwritten:
        number[0] = number[0] < walk->waves - 1;
        break;
    default:
        return false;
    }
    set_number(walk, hec_result(op, 0), number[0]);
    return true;
}

static void run_block(struct hec_walk *walk, MlirBlock block);

static void pass_on(struct hec_walk *walk, const struct hec_for *loop, bool out) {
    if (walk->carry && !walk->stop) walk->carry(walk, loop, out);
}

static void take(struct hec_walk *walk, const struct hec_for *loop, bool again) {
    if (walk->take && !walk->stop) walk->take(walk, loop, again);
}

static void run_loop(struct hec_walk *walk, MlirOperation op) {
    const struct hec_for loop = hec_for_of(op);
    const bool waves = loop.count == HEC_COUNT_AT_RUN_TIME;
    const int64_t outer = walk->layer, count = hec_walk_number(walk, loop.bound);
    take(walk, &loop, false);
    for (int64_t step = 0; step < count && !walk->stop; step++) {
        if (!waves) walk->layer = loop.down ? count - 1 - step : step;
        set_number(walk, mlirBlockGetArgument(loop.body, 0), step);
        pass_on(walk, &loop, false);
        run_block(walk, loop.body);
        take(walk, &loop, true);
    }
    walk->layer = outer;
    pass_on(walk, &loop, true);
}

static void run_block(struct hec_walk *walk, MlirBlock block) {
    for (MlirOperation op = mlirBlockGetFirstOperation(block);
         !mlirOperationIsNull(op) && !walk->stop; op = mlirOperationGetNextInBlock(op)) {
        if (hec_op_is(op, HEC_OP_FOR)) {
            run_loop(walk, op);
        } else if (!run_index(walk, op)) {
            walk->op(walk, op);
        }
    }
}

void hec_walk_func(struct hec_walk *walk, MlirOperation module, const char *name) {
    const MlirOperation func = hec_find_symbol(module, HEC_STR(name));
    walk->layer = -1;
    if (hec_op_is(func, HEC_OP_FUNC) && !walk->stop) run_block(walk, hec_func_body(func));
}

void hec_walk_free(struct hec_walk *walk) {
    hec_map_free(&walk->number);
}
