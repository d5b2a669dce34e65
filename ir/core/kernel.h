// Kernels (kernels.def), and hk.call: an operation that a kernel computes.
//
// A call has the operands, results and attributes of the operation that its kernel computes. Behind them
// it may have one operand that result 0 is added to (`onto`), and an epilogue: a region, as that of a
// moe.fused, whose first argument is a block of result 0 and the others are further operands, its inputs.
// Its yielded values are further results of the call. The region is empty where there is none.
#ifndef HECATE_IR_CORE_KERNEL_H
#define HECATE_IR_CORE_KERNEL_H

#include "ir/core/op.h"

enum hec_kernel_types { HEC_KERNEL_NONE, HEC_KERNEL_REAL };

struct hec_kernel {
    const char *name;     // "matmul_nn"
    enum hec_op computes; // HEC_OP_contract
    enum hec_kernel_types types;
    const char *values;    // Operands and results that its form for values of bf16 has in bf16.
    const char *sizes;     // "m n k"
    const char *arguments; // As in kernels.def.
};

enum { HEC_CALL_OPERANDS = 8, HEC_CALL_RESULTS = 6, HEC_SIZES_MAX = 6 };

// NULL: there is no kernel of that name.
const struct hec_kernel *hec_kernel_find(MlirStringRef name);
// The kernel that `op` calls; NULL: it is no hk.call, or names none.
const struct hec_kernel *hec_kernel_of(MlirOperation op);
// Whether the kernel calls back for each block of its result.
bool hec_kernel_takes_epilogue(const struct hec_kernel *kernel);

// The parts of a call. For any other operation: its operands and results, and nothing more.
struct hec_call {
    int operands, results; // Those of the operation that is computed come first.
    MlirValue onto;        // Null: result 0 is stored.
    int first_input, inputs;
    int outputs;     // Outputs of the epilogue; result `results` is the first one.
    MlirBlock block; // Its body; null: there is none.
};
struct hec_call hec_call_of(MlirOperation op);

// The operand or result `name` of a call, or of any other operation, "affine+1" being the one behind "affine", and
// which result it is (-1: none). False: its operation has nothing of that name. Null: it could have one, and this call
// has not.
bool hec_call_value(MlirOperation call, const char *name, MlirValue *value, int *result);

// The weights of a call, whose layout its attribute `layout` says.
struct hec_weights {
    int operand, result; // Which one it is; -1, -1: the call has none.
    bool panels;         // Its kernel takes panels only, where the target has any.
};
struct hec_weights hec_call_weights(MlirOperation call);

// Whether a layout is "panels".
bool hec_is_panels(MlirStringRef layout);

// Builds a call of `kernel` in place of `op`, the operation that it computes; its operands, results,
// attributes (with `more`), location and unit are those of `op`. `onto` may be null. `epilogue`, a moe.fused
// that reads result 0 of `op`, may be null; its region is taken from it. Replaces nothing.
MlirOperation hec_build_kernel_call(const struct hec_kernel *kernel, MlirOperation op,
                                    MlirValue onto, MlirOperation epilogue, int more,
                                    const MlirNamedAttribute *attribute);

// Builds before `call` the operation that its kernel computes. The caller destroys it.
MlirOperation hec_call_operation(MlirOperation call);

// The dimensions that the size `name` of a call lists, with the sizes they have in its operands and results.
// False: it has no such size, or one lists what none of these has.
bool hec_call_size(MlirOperation call, const char *name, struct hec_tensor *dims);

// ---- which kernel computes an operation (kernels/)

struct hec_size {
    const char *name;
    struct hec_tensor dims; // The size is their product.
};

struct hec_choice {
    const struct hec_kernel *kernel; // NULL: none does, it is a loop or a call of the runtime.
    int sizes;
    struct hec_size size[HEC_SIZES_MAX];
};

// The kernel for `op` and its sizes. Pure: told by the types and attributes of `op`.
struct hec_choice hec_choose_kernel(MlirOperation op);

// Runs of neighbouring inputs of one type that moe.fused can have. IRDL wants the operands of a group
// to be of one type; the attribute operandSegmentSizes says how long each of the groups is. And values
// that go in or out of it.
enum { HEC_FUSED_RUNS = 24, HEC_FUSED_VALUES = 64 };

// How many runs `inputs` form, and the length of each; with more than HEC_FUSED_RUNS they cannot be fused
// in this order.
int hec_fused_runs(int inputs, const MlirValue *input, int32_t length[HEC_FUSED_RUNS]);

#endif
