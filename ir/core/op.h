// The op table: the facts of an operation that every stage needs, one row each.
#ifndef HECATE_IR_CORE_OP_H
#define HECATE_IR_CORE_OP_H

#include "ir/core/ir.h"

enum hec_op {
#define HEC_OP(id, dialect, operands, results, attributes) HEC_OP_##id,
#include "ir/ops.def"
#undef HEC_OP
    // Upstream operations the passes look at.
    HEC_OP_FUNC,
    HEC_OP_RETURN,
    HEC_OP_FUNC_CALL,
    HEC_OP_FOR,
    HEC_OP_SCF_YIELD,
    HEC_OP_YIELD, // vector.yield ends the region of moe.fused.
    HEC_OP_CONSTANT,
    HEC_OP_ADDI,
    HEC_OP_SUBI,
    HEC_OP_MODULE,
    HEC_OP_OTHER, // Anything else; also the number of rows.
};

struct hec_gradient; // ir/core/gradient.h

// Floating-point operations and bytes of one execution.
struct hec_cost {
    double flops;
    double bytes;
};

struct hec_traits {
    bool pure;        // Same operands, same results, no effect: may be dropped, merged, recomputed.
    bool elementwise; // May join a moe.fused region.
    bool cheap;       // @backward may as well recompute it as keep its results.
    unsigned adds;    // Bit i: the kernel can add result i to its destination instead of storing.
    unsigned
        in_place; // Bit i: result 0 may take the buffer of operand i (same type, its last use).

    // Writes the types of all results for `op`'s operands and attributes, or reports with
    // hec_ir_error and returns false. NULL: the result types are the builder's choice (verify looks).
    bool (*infer)(MlirOperation op, MlirType *results);
    // Beyond infer; reports with hec_ir_error and returns false. May be NULL.
    bool (*verify)(MlirOperation op);
    // Adds the gradients of the operands. NULL: nothing flows back.
    void (*gradient)(struct hec_gradient *g, MlirOperation op);
    struct hec_cost (*cost)(MlirOperation op); // NULL: bytes of operands and results, no flops.
};

struct hec_op_row {
    const char *name;                            // "moe.contract"
    const char *operands, *results, *attributes; // As in ops.def.
};

// The row of `op`; the row of HEC_OP_OTHER for unknown operations.
const struct hec_op_row *hec_op_row(enum hec_op op);
enum hec_op hec_op_of(MlirOperation op);

// The traits of an operation, never NULL; none are set for HEC_OP_OTHER. They come from above: hec_ir_context hands
// over the table, [HEC_OP_OTHER + 1], the same for all contexts. So operations need the core, and it none of them.
const struct hec_traits *hec_traits_of(enum hec_op op);
void hec_op_use(const struct hec_traits *const traits[]);
static inline bool hec_op_is(MlirOperation op, enum hec_op id) {
    return !mlirOperationIsNull(op) && hec_op_of(op) == id;
}
// The operation that `op` computes: for an hk.call that of its kernel, for others their own kind.
enum hec_op hec_op_computes(MlirOperation op);
static inline const struct hec_traits *hec_op_traits(MlirOperation op) {
    return hec_traits_of(hec_op_computes(op));
}

// The operand that word `index` of ops.def names, one that `op`, or a call of its kernel, may lack; null: it does.
MlirValue hec_optional_operand(MlirOperation op, int index);
// The attribute of operations with several optional operands: has[i] is 1 where that of word i is there, else 0.
MlirNamedAttribute hec_attr_operands(MlirContext c, int words, const int32_t *has);

// For an hk.call: that of the computed operation.
struct hec_cost hec_op_cost(MlirOperation op);

// The operand `layer` of `op`, or of a call of its kernel; null where it has none.
MlirValue hec_layer_of(MlirOperation op);

// Whether an operation that moves experts is done once in a step of several iterations: its `scope` is "step".
bool hec_is_of_step(MlirOperation op);

// Checks one operation's attributes, then its types, homes and rules. Reports faults of the first of these
// that finds one. The kinds of what it names must have been checked.
bool hec_op_verify(MlirOperation op);

// Checks a whole module: MLIR's own verifier; then that no attribute is unknown or of another kind than
// ops.def and module.def say; then each operation's types, homes and rules. Reports every fault of the
// first of these that finds one.
bool hec_ir_verify(MlirOperation module);

#endif
