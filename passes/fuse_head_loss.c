// fuse-head-loss: the head and its loss are one operation, which has the logits of a block of tokens at a time.
//
//   before   %logits = moe.contract(%x, %head); stash %logits @logits
//            %loss, %lse = moe.cross_entropy(%logits, %targets, %scale)
//   after    stash %x @logits.hidden
//            %loss, %lse, %block = moe.linear_cross_entropy(%x, %head, %targets, %scale); stash %block @logits
//
// Why      Logits of all tokens, and their gradient in the same place, are the largest array of a model with a large
//          vocabulary. Backward recomputes them, which is a third more arithmetic of the head.
// Needs    parallel.logits, a number of tokens; @forward without calls, and `rounds`. Before differentiate, which
//          so makes the gradient of the whole.
// Leaves   no logits of all tokens. Slots that held them hold those of a block. %x is observed, too: the runtime
//          computes from it the logits that it wants to see.
// Reports  "not yet" for a loss whose logits are not exactly `x @ param`, or have another reader, and for a policy's
//          losses.
#include <stdio.h>

#include "ir/accessors.h"
#include "ir/core/setting.h"
#include "ir/ops/contract.h"
#include "passes/base/pass.h"

struct head {
    MlirOperation loss, product, stash;
    bool turned;
};

// Logits are read by their loss and by the runtime.
static bool is_read_by_loss_alone(struct head *head, MlirValue logits) {
    HEC_EACH_USE (use, logits) {
        const MlirOperation user = mlirOpOperandGetOwner(use);
        if (mlirOperationEqual(user, head->loss)) continue;
        if (!hec_op_is(user, HEC_OP_stash) || head->stash.ptr) return false;
        head->stash = user;
    }
    return head->stash.ptr;
}

// x [tokens.., K..] by a parameter [K.., V] or [V, K..].
static bool find(MlirOperation loss, struct head *head) {
    const MlirValue logits = hec_cross_entropy_logits(loss);
    struct hec_contract c;
    *head = (struct head){.loss = loss, .product = hec_defining(logits)};
    if (!hec_op_is(head->product, HEC_OP_contract) || !hec_contract_of(head->product, &c) ||
        c.form == HEC_CONTRACT_TN || !is_read_by_loss_alone(head, logits))
        return false;
    const struct hec_tensor targets =
        hec_tensor_of(mlirValueGetType(hec_cross_entropy_targets(loss)));
    const MlirOperation get = hec_defining(hec_contract_b(head->product));
    head->turned = c.form == HEC_CONTRACT_NT;
    return c.m.rank == targets.rank && (head->turned ? c.k : c.n).rank == 1 &&
           hec_op_is(get, HEC_OP_get) && mlirValueIsNull(hec_get_layer(get));
}

// Brings what `v` is computed from before `place`, where nothing has an effect: targets further ahead, a scale.
static bool rise(MlirValue v, MlirOperation place) {
    const MlirOperation op = hec_defining(v);
    if (mlirOperationIsNull(op) || mlirOperationIsBeforeInBlock(op, place)) return true;
    if (!hec_op_traits(op)->pure) return false;
    for (int i = 0; i < mlirOperationGetNumOperands(op); i++) {
        if (!rise(hec_operand(op, i), place)) return false;
    }
    mlirOperationMoveBefore(op, place);
    return true;
}

static MlirType block_type(MlirOperation loss, int64_t most) {
    const struct hec_tensor logits =
        hec_tensor_of(mlirValueGetType(hec_cross_entropy_logits(loss)));
    const int last = logits.rank - 1;
    int64_t tokens = 1;
    for (int i = 0; i < last; i++) tokens *= logits.size[i];
    struct hec_tensor block = {.element = logits.element};
    hec_tensor_append(&block, HEC_STR("block"), tokens < most ? tokens : most);
    hec_tensor_append(&block, logits.dim[last], logits.size[last]);
    return hec_tensor_type(&block);
}

// A symbol for what the logits in `slot` are computed from.
static MlirAttribute hidden_name(MlirOperation slot) {
    const MlirStringRef own = hec_slot_sym_name(slot);
    char text[256];
    for (int n = 0;; n++) {
        snprintf(text, sizeof text, n ? "%.*s.hidden.%d" : "%.*s.hidden", (int)own.length, own.data,
                 n);
        if (mlirOperationIsNull(hec_find_symbol(hec_module_of(slot), HEC_STR(text))))
            return mlirStringAttrGet(mlirOperationGetContext(slot), HEC_STR(text));
    }
}

// Keeps `x` for the runtime, once.
static void observe(struct hec_builder *b, MlirValue x, MlirOperation slot) {
    HEC_EACH_USE (use, x) {
        if (hec_op_is(mlirOpOperandGetOwner(use), HEC_OP_stash)) return;
    }
    const MlirNamedAttribute attribute[] = {
        hec_attr(b->context, "sym_name", hidden_name(slot)),
        hec_attr_type(b->context, "type", mlirValueGetType(x)),
        hec_attr_int(b->context, "layers", 0),
        hec_attr_bool(b->context, "observed", true),
    };
    struct hec_builder top = hec_builder_before(slot);
    const MlirOperation hidden = hec_build_op(&top, HEC_OP_slot, 0, NULL, 0, NULL, 4, attribute);
    const MlirNamedAttribute symbol =
        hec_attr_symbol(b->context, "slot", hec_slot_sym_name(hidden));
    hec_build_op(b, HEC_OP_stash, 1, &x, 0, NULL, 1, &symbol);
}

// It stands where the GEMM did, where it can: gradients of a parameter that several heads share are added in the same order
// as without this pass.
static void fuse(const struct head *head, int64_t most) {
    const MlirOperation loss = head->loss, product = head->product;
    const MlirOperation slot = hec_find_symbol(hec_module_of(loss), hec_stash_slot(head->stash));
    const MlirValue in[] = {hec_contract_a(product), hec_contract_b(product),
                            hec_cross_entropy_targets(loss), hec_cross_entropy_scale(loss)};
    const MlirType type[] = {mlirValueGetType(hec_cross_entropy_loss(loss)),
                             mlirValueGetType(hec_cross_entropy_lse(loss)), block_type(loss, most)};
    const bool early = rise(in[2], product) && rise(in[3], product);
    struct hec_builder b = hec_builder_before(product);
    observe(&b, in[0], slot);
    b = hec_builder_before(loss); // It has the name of the loss.
    if (early) b.before = product;
    MlirNamedAttribute attribute[2];
    int attributes = 0;
    if (head->turned) attribute[attributes++] = hec_attr_bool(b.context, "turned", true);
    if (hec_any_rounds(product)) attribute[attributes++] = hec_attr_bool(b.context, "rounds", true);
    const MlirOperation made =
        hec_build_op(&b, HEC_OP_linear_cross_entropy, 4, in, 3, type, attributes, attribute);
    mlirValueReplaceAllUsesOfWith(hec_cross_entropy_loss(loss), hec_result(made, 0));
    mlirValueReplaceAllUsesOfWith(hec_cross_entropy_lse(loss), hec_result(made, 1));
    hec_stash_set_value(head->stash, hec_result(made, 2));
    mlirOperationMoveAfter(head->stash, made);
    hec_set_attr(slot, hec_attr_type(b.context, "type", type[2]));
    mlirOperationDestroy(loss);
    mlirOperationDestroy(product);
}

static bool applies(MlirOperation module) {
    return hec_setting_count(module, HEC_KEY_parallel_logits, 0) > 0;
}

static enum hec_pass_result run(MlirOperation module, const struct hec_pass_options *options) {
    (void)options;
    const int64_t most = hec_setting_count(module, HEC_KEY_parallel_logits, 0);
    bool sound = true;
    HEC_EACH (op, hec_ops_below(module)) {
        // Erased operations stand before their loss.
        struct head head;
        if (hec_op_is(op, HEC_OP_dpo) || hec_op_is(op, HEC_OP_policy))
            sound = hec_ir_error(op, "not yet: parallel.logits = %" PRId64 " with this loss", most);
        if (!hec_op_is(op, HEC_OP_cross_entropy)) continue;
        if (find(op, &head)) {
            fuse(&head, most);
            continue;
        }
        sound = hec_ir_error(op,
                             "not yet: parallel.logits = %" PRId64 " where logits are not "
                             "exactly `x @ param`, or have another reader",
                             most);
    }
    return sound ? HEC_PASS_DONE : HEC_PASS_REFUSED;
}

const struct hec_pass_code hec_pass_fuse_head_loss = {
    .applies = applies,
    .run = run,
};
