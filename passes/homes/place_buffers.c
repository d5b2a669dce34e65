// place-buffers: every tensor gets a home; the memory of the program is known.
//
//   before   %h = moe.silu(%x) : tensor<...>
//   after    %h = moe.silu(%x) {home = ["arena+4096"]} : tensor<...>
//            moe.slot @x {offset = 0, stride = 1048576, rows = 13}
//            moe.param @w {layout = "panels", matrix = [128, 512], elements = 65536, offset = 0}
//
// Why      The emitted program allocates nothing: one arena, whose size is printed when compiling,
//          holds saved values and temporaries, and values that never live at once share its bytes.
//          Saving and carrying cost no copy: values are computed where they are read next.
// Needs    @forward, and @backward when it is to be placed with it; no calls; the arguments ids,
//          targets, scale, auxiliary_scale.
// Leaves   `home` on every operation with tensor results and every loop, `argument_home` on loops
//          and functions, `adds` where a result is added to a gradient; offset, stride and rows of
//          every slot; layout, matrix, elements and offset of every parameter, `rounded` where
//          GEMMs read a copy in bf16; layout of every call with weights; offset and chunk_elements of every set;
//          hecate.arena_bytes and hecate.param_elements of the module; unit_places of what ranks
//          have parts of, and hecate.unit_bytes. moe.copy where a value is
//          wanted in two places. prove-homes holds.
// Reports  a layer that is neither constant nor the loop's; weights of experts' GEMMs that something else
//          reads, too; faults that the proof finds.
#include <assert.h>
#include <string.h>

#include "ir/accessors.h"
#include "ir/core/kernel.h"
#include "passes/base/pass.h"
#include "passes/homes/homes.h"
#include "passes/homes/prove.h"

enum { ROUNDS_MAX = 64, VALUES_MAX = 32 };

static bool has_tensors(MlirOperation op) {
    for (int i = 0; i < mlirOperationGetNumResults(op); i++) {
        if (mlirTypeIsARankedTensor(mlirValueGetType(hec_result(op, i)))) return true;
    }
    return false;
}

static void write_results(struct hec_homes *p, MlirOperation op) {
    const MlirContext c = mlirOperationGetContext(op);
    const int results = (int)mlirOperationGetNumResults(op);
    MlirAttribute home[VALUES_MAX], adds[VALUES_MAX];
    bool any = false;
    assert(results <= VALUES_MAX);
    for (int i = 0; i < results; i++) {
        const struct hec_home where = hec_homes_home(p, hec_result(op, i));
        const int index = hec_live_index(&p->live, hec_result(op, i));
        home[i] = hec_home_attribute(c, &where);
        adds[i] = mlirBoolAttrGet(c, p->placed[index].adds);
        any |= p->placed[index].adds;
    }
    hec_set_attr(op, hec_attr(c, "home", mlirArrayAttrGet(c, results, home)));
    if (any) hec_set_attr(op, hec_attr(c, "adds", mlirArrayAttrGet(c, results, adds)));
}

// Homes of the arguments of `block`, which belongs to `op`, from argument `first` on.
static void write_arguments(struct hec_homes *p, MlirOperation op, MlirBlock block, int first) {
    const MlirContext c = mlirOperationGetContext(op);
    const int count = (int)mlirBlockGetNumArguments(block) - first;
    MlirAttribute home[VALUES_MAX];
    assert(count <= VALUES_MAX);
    for (int i = 0; i < count; i++) {
        const struct hec_home where = hec_homes_home(p, mlirBlockGetArgument(block, first + i));
        home[i] = hec_home_attribute(c, &where);
    }
    hec_set_attr(op, hec_attr(c, "argument_home", mlirArrayAttrGet(c, count, home)));
}

static void write_slots(struct hec_homes *p) {
    for (int i = 0; i < p->slots.count; i++) {
        const struct hec_slot *slot = &p->slots.item[i];
        hec_any_put_offset(slot->op, slot->offset);
        hec_any_put_stride(slot->op, slot->stride);
        hec_any_put_rows(slot->op, slot->rows);
    }
}

static void write_attributes(struct hec_homes *p) {
    static const char *const entry[] = {"forward", "backward"};
    for (int k = 1; k < p->live.ops.count; k++) {
        const MlirOperation op = p->live.ops.item[k];
        if (has_tensors(op)) write_results(p, op);
        if (hec_op_is(op, HEC_OP_FOR)) write_arguments(p, op, hec_for_of(op).body, 1);
    }
    for (int e = 0; e < 2; e++) {
        const MlirOperation func = hec_find_symbol(p->module, HEC_STR(entry[e]));
        if (!mlirOperationIsNull(func)) write_arguments(p, func, hec_func_body(func), 0);
    }
    write_slots(p);
    hec_module_put_arena_bytes(p->module, p->arena_bytes);
}

static bool check(MlirOperation module) {
    const MlirOperation forward = hec_find_symbol(module, HEC_STR("forward"));
    if (!hec_op_is(forward, HEC_OP_FUNC))
        return hec_ir_error(module, "no function @forward to place");
    bool sound = true;
    HEC_EACH (op, hec_ops_below(module)) {
        if (hec_op_is(op, HEC_OP_FUNC_CALL)) {
            sound = hec_ir_error(op, "calls have to be inlined before buffers are placed");
        } else if (hec_choose_kernel(op).kernel) {
            sound = hec_ir_error(op, "must be a call of its kernel: run select-kernels first");
        }
    }
    return sound;
}

// A repair changes the module, and with it every live range: decide again.
static bool decide(struct hec_homes *p) {
    for (int round = 0; round < ROUNDS_MAX; round++) {
        hec_live_find(&p->live, &p->arena, p->module);
        hec_homes_decide(p);
        if (!p->sound) return false;
        if (p->repairs.count == 0) return true;
        hec_homes_repair(p);
        hec_live_free(&p->live);
    }
    return hec_ir_error(p->module, "homes: does not come to an end");
}

static enum hec_pass_result place(struct hec_homes *p) {
    if (!decide(p)) return p->sound ? HEC_PASS_BROKEN : HEC_PASS_REFUSED;
    hec_homes_offsets(p);
    hec_homes_parameters(p);
    if (!p->sound) return HEC_PASS_REFUSED;
    hec_homes_units(p->module);
    write_attributes(p);
    return hec_homes_prove(p->module) ? HEC_PASS_DONE : HEC_PASS_BROKEN;
}

static enum hec_pass_result run(MlirOperation module, const struct hec_pass_options *options) {
    if (!check(module)) return HEC_PASS_REFUSED;
    struct hec_homes p = {
        .module = module,
        .target = hec_target_of(module),
        .sound = true,
        .new_homes = strcmp(hec_pass_option(options, "results", "in-place"), "apart") == 0,
    };
    const enum hec_pass_result result = place(&p);
    hec_live_free(&p.live);
    hec_arena_free(&p.arena);
    return result;
}

// For measuring what it is worth (bench/ablation).
static const struct hec_pass_option options_known[] = {
    {"results", "in-place|apart", "Whether elementwise results take the buffer of an operand"},
    {0},
};

const struct hec_pass_code hec_pass_place_buffers = {
    .option = options_known,
    .run = run,
};
