// cache-keys: a forward may go on with a sequence where the one before has ended.
//
//   before   slots that hold the keys and values of attention for backward
//   after    the same, `kept`: the next @forward reads them, too; the module `continues`
//
// Why      Sampling computes token after token. Keys and values of earlier tokens do not change, so that a
//          call of the new positions alone is enough. They lie where backward would read them: no memory is added.
// Needs    one rank, tensors that lie with the host, and stashes of keys and values behind recompute. Positions must
//          be independent of each other but in causal attention, as far as logits depend on them: a list of
//          operations below. Losses may come out different, nobody reads them.
// Leaves   every program that is not so as it is: it samples by computing the whole window.
// Reports  nothing.
#include <stdlib.h>

#include "ir/accessors.h"
#include "ir/target/target.h"
#include "passes/base/pass.h"

// The place of the positions among a tensor's dimensions.
enum place {
    NOWHERE,
    TOKENS,    // [batch, T, ..]
    SEQUENCES, // [batch, ..]: losses are computed from them.
    TABLE,     // [T, ..]
    ELSEWHERE,
};

struct finder {
    MlirStringRef positions; // Name of the dimension.
    int64_t count;
    struct hec_ops kept; // Slots.
};

static enum place place_of(const struct finder *f, MlirValue value) {
    const MlirType type = mlirValueGetType(value);
    if (!mlirTypeIsARankedTensor(type)) return NOWHERE;
    const struct hec_tensor t = hec_tensor_of(type);
    const bool batch = t.rank > 0 && mlirStringRefEqual(t.dim[0], HEC_STR("batch"));
    int found = 0, at = -1;
    for (int i = 0; i < t.rank; i++) {
        if (!mlirStringRefEqual(t.dim[i], f->positions)) continue;
        if (t.size[i] != f->count) return ELSEWHERE;
        found++, at = i;
    }
    if (found == 0) return batch ? SEQUENCES : NOWHERE;
    if (found > 1) return ELSEWHERE;
    return batch && at == 1 ? TOKENS : !batch && at == 0 ? TABLE : ELSEWHERE;
}

// The slot that `value` is stashed in; null: none.
static MlirOperation slot_of(MlirOperation module, MlirValue value) {
    HEC_EACH_USE (use, value) {
        const MlirOperation user = mlirOpOperandGetOwner(use);
        if (hec_op_is(user, HEC_OP_stash)) return hec_find_symbol(module, hec_any_slot(user));
    }
    return (MlirOperation){0};
}

// A table is read row by row: by rope, or element by element.
static bool is_read_by_position(MlirValue table) {
    HEC_EACH_USE (use, table) {
        const MlirOperation user = mlirOpOperandGetOwner(use);
        if (!hec_op_is(user, HEC_OP_rope) && !hec_op_traits(user)->elementwise) return false;
    }
    return true;
}

static bool keep_attention(struct finder *f, MlirOperation module, MlirOperation op) {
    const MlirValue read[] = {hec_sdpa_k(op), hec_sdpa_v(op), hec_sdpa_begins(op)};
    if (!hec_any_causal(op)) return false;
    for (int i = 0; i < 3 && !mlirValueIsNull(read[i]); i++) {
        const MlirOperation slot = slot_of(module, read[i]);
        if (mlirOperationIsNull(slot) || place_of(f, read[i]) != TOKENS) return false;
        hec_ops_push(&f->kept, slot);
    }
    return place_of(f, hec_sdpa_out(op)) == TOKENS;
}

// Whether results have the positions of operands: those of tokens no sum of positions, and made of none.
static bool keeps_positions(const struct finder *f, MlirOperation op) {
    enum place of = NOWHERE;
    for (int i = 0; i < mlirOperationGetNumOperands(op); i++) {
        const enum place place = place_of(f, hec_operand(op, i));
        if (place == ELSEWHERE) return false;
        if (place == NOWHERE || place == TABLE) continue;
        if (of != NOWHERE && of != place) return false;
        of = place;
    }
    for (int i = 0; i < mlirOperationGetNumResults(op); i++) {
        if (place_of(f, hec_result(op, i)) != of) return false;
    }
    return true;
}

// Whether `op` computes each position alone, or a value that only losses read.
static bool is_by_position(struct finder *f, MlirOperation module, MlirOperation op) {
    if (hec_op_traits(op)->elementwise && !hec_op_is(op, HEC_OP_fill))
        return keeps_positions(f, op);
    switch (hec_op_of(op)) {
    case HEC_OP_fill:
        return place_of(f, hec_result(op, 0)) < TABLE;
    case HEC_OP_get:
        return place_of(f, hec_get_value(op)) == NOWHERE ||
               (place_of(f, hec_get_value(op)) == TABLE && is_read_by_position(hec_get_value(op)));
    case HEC_OP_contract:
    case HEC_OP_rmsnorm:
    case HEC_OP_layernorm:
    case HEC_OP_softmax:
    case HEC_OP_rope:
    case HEC_OP_gather:
    case HEC_OP_combine:
    case HEC_OP_sum:
    case HEC_OP_slice:
    case HEC_OP_concat:
    case HEC_OP_transpose:
    case HEC_OP_documents:
        return keeps_positions(f, op);
    case HEC_OP_linear_cross_entropy:
        return place_of(f, hec_linear_cross_entropy_x(op)) == TOKENS;
    case HEC_OP_sdpa:
        return keep_attention(f, module, op);
    case HEC_OP_router:
    case HEC_OP_route:
    case HEC_OP_permute:
    case HEC_OP_gate_rows:
    case HEC_OP_grouped_contract:
    case HEC_OP_spread:
    case HEC_OP_noise:
    case HEC_OP_dropout:
    case HEC_OP_stash:
    case HEC_OP_mean_scores:
    case HEC_OP_fractions:
    case HEC_OP_aux_loss:
    case HEC_OP_z_loss:
    case HEC_OP_ahead: // Shifts targets, which logits do not depend on.
    case HEC_OP_cross_entropy:
    case HEC_OP_distill:
    case HEC_OP_dpo:
    case HEC_OP_policy:
    case HEC_OP_FUNC:
    case HEC_OP_FOR:
    case HEC_OP_SCF_YIELD:
    case HEC_OP_CONSTANT:
    case HEC_OP_RETURN:
        return true;
    default:
        return false;
    }
}

static bool applies(MlirOperation module) {
    return !hec_target_of(module)->apart && !hec_module_has_world(module);
}

static enum hec_pass_result run(MlirOperation module, const struct hec_pass_options *options) {
    (void)options;
    const MlirOperation forward = hec_find_symbol(module, HEC_STR("forward"));
    if (!hec_op_is(forward, HEC_OP_FUNC)) return HEC_PASS_DONE;
    const struct hec_tensor ids =
        hec_tensor_of(mlirValueGetType(mlirBlockGetArgument(hec_func_body(forward), 0)));
    if (ids.rank != 2) return HEC_PASS_DONE;
    struct finder f = {.positions = ids.dim[1], .count = ids.size[1]};
    struct hec_ops ops = hec_ops_below(forward);
    bool sound = true;
    for (int k = 0; sound && k < ops.count; k++) sound = is_by_position(&f, module, ops.op[k]);
    if (sound) hec_module_put_continues(module, true);
    for (int k = 0; sound && k < f.kept.count; k++) hec_any_put_kept(f.kept.op[k], true);
    free(ops.op);
    free(f.kept.op);
    return HEC_PASS_DONE;
}

const struct hec_pass_code hec_pass_cache_keys = {
    .applies = applies,
    .run = run,
};
