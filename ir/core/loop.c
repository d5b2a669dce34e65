// Loops over layers: scf.for that counts up from 0 by 1; a backward loop computes its layer first.
#include "ir/core/op.h"

#include <assert.h>

enum { LOWER, UPPER, STEP, BOUNDS, CARRIED_MAX = 16 }; // Operands of scf.for; then what it carries.

// Makes the loop; `count_value` or, when that is null, `count` says how often its body runs.
static struct hec_for build(struct hec_builder *b, int64_t count, MlirValue count_value, bool down,
                            int carried, const MlirValue *init) {
    assert(carried <= CARRIED_MAX);
    MlirValue operand[BOUNDS + CARRIED_MAX];
    MlirType type[1 + CARRIED_MAX];
    MlirLocation at[1 + CARRIED_MAX];

    struct hec_builder bounds = *b;
    bounds.at = hec_loc_strip(b->at);
    operand[LOWER] = hec_build_index(&bounds, 0);
    operand[UPPER] = count_value.ptr ? count_value : hec_build_index(&bounds, count);
    operand[STEP] = hec_build_index(&bounds, 1);
    type[0] = mlirIndexTypeGet(b->context);
    at[0] = hec_loc_named(down ? "step" : count_value.ptr ? "wave" : "i", hec_loc_strip(b->at));
    MlirValue last = {0}; // For a run-time count: outside of the loop.
    if (down && count_value.ptr) {
        const MlirValue before[] = {count_value, operand[STEP]};
        last = hec_build_value(&bounds, HEC_OP_SUBI, 2, before, type[0], 0, NULL);
    }
    for (int i = 0; i < carried; i++) {
        operand[BOUNDS + i] = init[i];
        type[1 + i] = mlirValueGetType(init[i]);
        at[1 + i] = mlirValueGetLocation(init[i]);
    }
    MlirRegion region = mlirRegionCreate();
    struct hec_for loop = {.body = mlirBlockCreate(1 + carried, type, at),
                           .down = down,
                           .bound = operand[UPPER],
                           .count = count,
                           .carried = carried};
    mlirRegionAppendOwnedBlock(region, loop.body);

    MlirOperationState state = mlirOperationStateGet(HEC_STR("scf.for"), b->at);
    mlirOperationStateAddOperands(&state, BOUNDS + carried, operand);
    mlirOperationStateAddResults(&state, carried, type + 1);
    mlirOperationStateAddOwnedRegions(&state, 1, &region);
    loop.op = mlirOperationCreate(&state);
    hec_builder_insert(b, loop.op);
    loop.layer = mlirBlockGetArgument(loop.body, 0);
    if (down) {
        struct hec_builder in = hec_builder_end(loop.body, hec_loc_strip(b->at));
        in.unit = b->unit;
        const MlirValue difference[] = {last.ptr ? last : hec_build_index(&in, count - 1),
                                        loop.layer};
        in.at = hec_loc_named(count_value.ptr ? "wave" : "i", in.at);
        loop.layer = hec_build_value(&in, HEC_OP_SUBI, 2, difference, type[0], 0, NULL);
    }
    return loop;
}

struct hec_for hec_build_for(struct hec_builder *b, int64_t count, bool down, int carried,
                             const MlirValue *init) {
    return build(b, count, (MlirValue){0}, down, carried, init);
}

struct hec_for hec_build_repeat(struct hec_builder *b, MlirValue count, bool down) {
    return build(b, HEC_COUNT_AT_RUN_TIME, count, down, 0, NULL);
}

void hec_for_yield(struct hec_for *loop, MlirLocation at, const MlirValue *value) {
    struct hec_builder b = hec_builder_end(loop->body, at);
    b.unit = hec_unit_of(loop->op);
    hec_build_op(&b, HEC_OP_SCF_YIELD, loop->carried, value, 0, NULL, 0, NULL);
}

static int64_t count_of(MlirValue v) {
    const MlirOperation op = hec_defining(v);
    return hec_op_is(op, HEC_OP_CONSTANT) ? hec_get_int(op, "value") : HEC_COUNT_AT_RUN_TIME;
}

// The layer of a descending loop is the subi at the start of its body; hec_build_for makes it.
struct hec_for hec_for_of(MlirOperation op) {
    assert(hec_op_is(op, HEC_OP_FOR));
    struct hec_for loop = {.op = op,
                           .body = mlirRegionGetFirstBlock(mlirOperationGetRegion(op, 0)),
                           .bound = hec_operand(op, UPPER),
                           .carried = (int)mlirOperationGetNumResults(op)};
    loop.count = count_of(loop.bound);
    loop.layer = mlirBlockGetArgument(loop.body, 0);
    HEC_EACH_IN (first, loop.body) {
        if (hec_op_is(first, HEC_OP_CONSTANT)) continue;
        if (hec_op_is(first, HEC_OP_SUBI) && mlirValueEqual(hec_operand(first, 1), loop.layer)) {
            loop.layer = hec_result(first, 0);
            loop.down = true;
        }
        break;
    }
    return loop;
}

MlirValue hec_for_argument(const struct hec_for *loop, int index) {
    return mlirBlockGetArgument(loop->body, 1 + index);
}

MlirValue hec_for_init(const struct hec_for *loop, int index) {
    return hec_operand(loop->op, BOUNDS + index);
}

MlirValue hec_for_yielded(const struct hec_for *loop, int index) {
    return hec_operand(mlirBlockGetTerminator(loop->body), index);
}
