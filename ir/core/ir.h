// The IR, as the compiler's stages see it: a thin layer over MLIR's C API.
//
// A tensor's dimension names are its encoding: tensor<8x256x64xf32, ["batch", "T", "D"]>. Dimensions
// made by the compiler: `batch` (sequences of a microbatch, always first), `rows` (token rows grouped
// by expert), `picks` (top-k), `first` (experts + 1). A rank-0 tensor has no encoding.
//
// Values are named by their location: NameLoc("h", file:line:col), after inlining
// NameLoc("h", CallSite(file:line:col at NameLoc("attention", file:line:col))).
#ifndef HECATE_IR_CORE_IR_H
#define HECATE_IR_CORE_IR_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>

#include <mlir-c/BuiltinAttributes.h>
#include <mlir-c/BuiltinTypes.h>
#include <mlir-c/Diagnostics.h>
#include <mlir-c/IR.h>

#include "ir/core/older.h"

#define HEC_STR(text) mlirStringRefCreateFromCString(text)

// ---- context (ir/context.c, dialect.c)

// A context with builtin, func, scf, arith, vector and our two dialects, unregistered ops refused,
// threads off. Diagnostics of MLIR go to `report` as "file:line:col", text and severity.
typedef void hec_ir_report(void *user, const char *file, unsigned line, unsigned column,
                           MlirDiagnosticSeverity severity, const char *text);
MlirContext hec_ir_context(hec_ir_report *report, void *user);

// The IRDL definition of our dialects, as text that mlir-opt --irdl-file reads. Caller frees.
char *hec_ir_irdl(void);

// Reports an error at `op`'s location, prefixed with the operation's name. Returns false, so that a check can end with
// `return hec_ir_error(...)`.
bool hec_ir_error(MlirOperation op, const char *format, ...) __attribute__((format(printf, 2, 3)));

// Prints with locations and names as prefixes, so that it reads back to the same IR.
void hec_ir_print(MlirOperation op, void (*write)(MlirStringRef text, void *user), void *user);

// ---- shapes (shape.c)

enum { HEC_IR_RANK_MAX = 8 };
#define HEC_IR_ELEMENTS_MAX ((int64_t)1 << 40) // So that sums of bytes over layers stay in range.
#define HEC_IR_LAYERS_MAX ((int64_t)1 << 14)
// Results of @forward: loss, cross entropy, auxiliary loss, then the losses that have names, in the order of their
// slots.
// Positions that moe.delta_rule computes together, at most: HK_DELTA_CHUNK of kernels/delta_rule/delta_rule.h.
enum { HEC_DELTA_CHUNK = 64 };

enum { HEC_LOSSES = 3, HEC_IR_NAMED_LOSSES_MAX = 8 };
enum { HEC_IR_EXPERTS_MAX = 4096 }; // Experts of a set: the limit of routers and the planner.

// A tensor type, taken apart. Names are borrowed from the context.
struct hec_tensor {
    int rank;
    int64_t size[HEC_IR_RANK_MAX];
    MlirStringRef dim[HEC_IR_RANK_MAX];
    MlirType element;
};

struct hec_tensor hec_tensor_of(MlirType type); // `type` must be a ranked tensor.
MlirType hec_tensor_type(const struct hec_tensor *tensor);
int hec_tensor_find(const struct hec_tensor *tensor, MlirStringRef dim); // Position or -1.
void hec_tensor_append(struct hec_tensor *tensor, MlirStringRef dim, int64_t size);
// Whether a ranked tensor with sizes has at least 1 and at most HEC_IR_ELEMENTS_MAX elements.
bool hec_type_is_sized(MlirType type);
int64_t hec_type_elements(MlirType type);
int64_t hec_type_bytes(MlirType type); // 0 for types that are no tensors.
bool hec_type_is_real(MlirType type);  // A tensor of f32 or f64: the numbers of all arithmetic.

// bf16 is a way to keep numbers of f32: readers have f32, and writers round. values.h lists the values that may be
// kept so.
bool hec_type_is_rounded(MlirType type);    // A tensor of bf16.
MlirType hec_type_rounded(MlirType type);   // The same dimensions in bf16.
MlirType hec_type_unrounded(MlirType type); // A tensor of bf16 in f32; others as they are.

// ---- building (builder.c)

struct hec_builder {
    MlirContext context;
    MlirBlock block;
    MlirOperation before; // Insert before this one; null: at the end of the block.
    MlirLocation at;      // Location of the operations that are built.
    MlirAttribute unit;   // Their unit; null: they are the model's own.
};

struct hec_builder hec_builder_before(MlirOperation op); // At op's location, in its unit.
struct hec_builder hec_builder_end(MlirBlock block, MlirLocation at);
// Later operations of `b` belong to `op`, or to the operation that made `v`: they have its location, name and unit.
void hec_builder_for(struct hec_builder *b, MlirOperation op);
void hec_builder_for_value(struct hec_builder *b, MlirValue v);
// Inserts `op`, made without hec_build_op. It joins the builder's unit, unless it has one.
void hec_builder_insert(struct hec_builder *b, MlirOperation op);

// Builds any operation with given result types.
MlirOperation hec_build_op(struct hec_builder *b, int op, int operands, const MlirValue *operand,
                           int results, const MlirType *result, int attributes,
                           const MlirNamedAttribute *attribute);
// Builds an operation whose row infers its result types. Returns it; a null operation after an
// error was reported.
MlirOperation hec_build_inferred(struct hec_builder *b, int op, int operands,
                                 const MlirValue *operand, int attributes,
                                 const MlirNamedAttribute *attribute);
// The same for one result of a given type.
MlirValue hec_build_value(struct hec_builder *b, int op, int operands, const MlirValue *operand,
                          MlirType type, int attributes, const MlirNamedAttribute *attribute);
MlirValue hec_build_index(struct hec_builder *b, int64_t value); // arith.constant
MlirValue hec_build_fill(struct hec_builder *b, MlirType type, double value);

MlirOperation hec_build_func(MlirBlock module, MlirOperation before, const char *name,
                             int arguments, const MlirType *type, const MlirLocation *at,
                             MlirLocation func_at, MlirBlock *entry);
// Ends the function's body with a return of `results` and sets its type.
void hec_build_return(struct hec_builder *b, MlirOperation func, int results,
                      const MlirValue *result);

// ---- loops over layers, and inside of them over waves (loop.c): scf.for from 0 to count, step 1

enum { HEC_COUNT_AT_RUN_TIME = -1 };

struct hec_for {
    MlirOperation op;
    MlirBlock body;
    MlirValue layer; // Layer of the iteration; counts down in backward loops (a subi in the body).
    bool down;
    MlirValue bound; // The bound of its count.
    int64_t count;   // HEC_COUNT_AT_RUN_TIME: a loop over waves, whose bound tells.
    int carried;
};

// Makes the loop, with a body that holds only the layer's computation; end it with hec_for_yield.
struct hec_for hec_build_for(struct hec_builder *b, int64_t count, bool down, int carried,
                             const MlirValue *init);
// A loop over waves: `count` times, known at run time; carries nothing.
struct hec_for hec_build_repeat(struct hec_builder *b, MlirValue count, bool down);
void hec_for_yield(struct hec_for *loop, MlirLocation at, const MlirValue *value);
struct hec_for hec_for_of(MlirOperation op);
MlirValue hec_for_argument(const struct hec_for *loop, int index);
MlirValue hec_for_init(const struct hec_for *loop, int index);
MlirValue hec_for_yielded(const struct hec_for *loop, int index);

// ---- attributes, symbols, names (attribute.c)

MlirNamedAttribute hec_attr(MlirContext c, const char *key, MlirAttribute value);
MlirNamedAttribute hec_attr_int(MlirContext c, const char *key, int64_t value);
MlirNamedAttribute hec_attr_float(MlirContext c, const char *key, double value); // f64
MlirNamedAttribute hec_attr_bool(MlirContext c, const char *key, bool value);
MlirNamedAttribute hec_attr_string(MlirContext c, const char *key, const char *value);
MlirNamedAttribute hec_attr_symbol(MlirContext c, const char *key, MlirStringRef symbol);
MlirNamedAttribute hec_attr_type(MlirContext c, const char *key, MlirType type);

bool hec_has_attr(MlirOperation op, const char *key);
// Attributes by name and kind, for code that takes operations of any kind; ir/accessors.h has a function for
// each. The attribute must be there, unless a comment allows its lack, and of that kind: hec_ir_verify sees to it.
MlirAttribute hec_get_attr(MlirOperation op, const char *key);
int64_t hec_get_int(MlirOperation op, const char *key);
double hec_get_float(MlirOperation op, const char *key);
bool hec_get_bool(MlirOperation op, const char *key);            // False when absent.
MlirStringRef hec_get_string(MlirOperation op, const char *key); // String or symbol; empty: absent.
MlirType hec_get_type(MlirOperation op, const char *key);
void hec_set_attr(MlirOperation op, MlirNamedAttribute attribute);

MlirOperation hec_find_symbol(MlirOperation module, MlirStringRef name); // Null when absent.
// From hold to release hec_find_symbol looks up in a table: no symbol may be added, removed or renamed.
void hec_symbols_hold(MlirOperation module);
void hec_symbols_release(void);
// The slot that holds "loads" of `set`, or the "logits" (`set` is null then). Null when absent.
MlirOperation hec_find_slot(MlirOperation module, const char *holds, MlirOperation set);
// The number of results of @forward: HEC_LOSSES, and one for each slot that holds the logits or the losses of a loss
// that has a name.
int hec_count_losses(MlirOperation module);
MlirOperation hec_module_of(MlirOperation op);
MlirOperation hec_func_of(MlirOperation op); // The function around `op`.
MlirBlock hec_func_body(MlirOperation func);
MlirBlock hec_module_body(MlirOperation module);

MlirLocation hec_loc_file(MlirContext c, const char *file, unsigned line, unsigned column);
MlirLocation hec_loc_named(const char *name, MlirLocation at); // `name` NULL: `at` itself.
MlirStringRef hec_loc_name(MlirLocation at);                   // Empty when it has none.
MlirLocation hec_loc_strip(MlirLocation at);                   // Without the name.
// The value's name; a loop-carried value takes that of its initial value. Empty when it has none.
MlirStringRef hec_value_name(MlirValue value);
// The location of `v`, with its name; a loop-carried value has that of its initial value.
MlirLocation hec_value_location(MlirValue v);
// Where a location points: the innermost file:line:col. False when it has no file. Locations are for
// people: nothing that a program computes may depend on them.
struct hec_location {
    MlirStringRef file;
    unsigned line, column;
};
bool hec_loc_resolve(MlirLocation at, struct hec_location *location);

// ---- units: the calls an operation came from (unit.c)

#define HEC_UNIT "unit"
MlirAttribute hec_unit_of(MlirOperation op);               // Null: it is the model's own.
MlirStringRef hec_unit_at(MlirOperation op, int depth);    // 0: the outermost; empty: none so deep.
MlirStringRef hec_unit_name(MlirOperation op);             // The innermost; empty: none.
bool hec_unit_is_in(MlirOperation op, MlirStringRef unit); // At any depth.
MlirAttribute hec_unit_around(MlirOperation op);           // The unit of the call; null: none.
MlirAttribute hec_unit_called(MlirOperation call, MlirStringRef callee); // Operations of `callee`.
bool hec_unit_verify(MlirOperation op);

// ---- whose rows: the set whose experts' rows an operation works on (rows.c)

#define HEC_ROWS_OF "rows_of"
MlirStringRef hec_rows_of(MlirOperation op);  // The set; empty: none.
MlirAttribute hec_rows_of_value(MlirValue v); // Null: it is no rows of experts.
// The attribute that says `set`, for building. Returns how many there are: 0 where `set` is null.
int hec_rows_attr(MlirAttribute set, MlirNamedAttribute *attribute);
// `op` works on the rows that it reads, unless it says whose, or reads none. Builders and inline see to it.
void hec_rows_inherit(MlirOperation op);
void hec_rows_forget(MlirOperation op);
// Checks rows_of: readers of rows have it, it is that of their operands, and slots have that of their values. Reports
// faults.
bool hec_rows_verify(MlirOperation op);

static inline MlirValue hec_operand(MlirOperation op, int index) {
    return mlirOperationGetOperand(op, index);
}
static inline MlirValue hec_result(MlirOperation op, int index) {
    return mlirOperationGetResult(op, index);
}
static inline MlirOperation hec_defining(MlirValue v) { // Null for block arguments.
    return mlirValueIsAOpResult(v) ? mlirOpResultGetOwner(v) : (MlirOperation){0};
}
MlirBlock hec_block_of(MlirValue v);

// ---- containers (map.c)

// Pointers to pointer-sized values. Zero-initialise; free with hec_map_free.
struct hec_map {
    const void **key;
    intptr_t *value;
    int count, capacity;
};
intptr_t *hec_map_at(struct hec_map *map, const void *key);       // Adds 0 when absent.
intptr_t hec_map_get(const struct hec_map *map, const void *key); // 0 when absent.
void hec_map_free(struct hec_map *map);

// Every operation below `root`, in pre-order. Free `op`.
struct hec_ops {
    MlirOperation *op;
    int count, capacity;
};
struct hec_ops hec_ops_below(MlirOperation root);
struct hec_ops hec_ops_in(MlirBlock block); // Not below.
void hec_ops_push(struct hec_ops *ops, MlirOperation op);

// HEC_EACH(op, hec_ops_below(root)) { ... }: a loop with `op` over a list that it frees, on every way out of it.
// HEC_EACH_OF(op, list, HEC_OP_x): over those that are an x when their turn comes (ir/core/op.h).
struct hec_each {
    struct hec_ops ops;
    int begun;  // Turns.
    bool ended; // The turn came to its end; else `break` ended it, and the loop.
};
bool hec_each_next(struct hec_each *each);
void hec_each_free(struct hec_each *each);
#define HEC_EACH(each, list)                                                                       \
    for (struct hec_each each##_each __attribute__((cleanup(hec_each_free))) = {.ops = (list)};    \
         hec_each_next(&each##_each);)                                                             \
        for (MlirOperation each = each##_each.ops.op[each##_each.begun - 1]; !each##_each.ended;   \
             each##_each.ended = true)
#define HEC_EACH_OF(each, list, id)                                                                \
    HEC_EACH (each, list)                                                                          \
        if (hec_op_is(each, id))

// Loops over a block, and over a value's uses, neither of which may change meanwhile.
#define HEC_EACH_IN(op, block)                                                                     \
    for (MlirOperation op = mlirBlockGetFirstOperation(block); op.ptr;                             \
         op = mlirOperationGetNextInBlock(op))
#define HEC_EACH_USE(use, value)                                                                   \
    for (MlirOpOperand use = mlirValueGetFirstUse(value); use.ptr;                                 \
         use = mlirOpOperandGetNextUse(use))

#endif
