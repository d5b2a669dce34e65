// Inside the interpreter: values, symbols, and the table of operations.
#ifndef HECATE_TESTS_INTERPRET_MACHINE_H
#define HECATE_TESTS_INTERPRET_MACHINE_H

#include <setjmp.h>

#include "tests/interpret/interpret.h"

// A value. Reals, counts and indices are all doubles; an index has rank 0. Never changed once made,
// but for the sums of gradients.
struct tensor {
    struct hec_tensor shape;
    int64_t count;
    double *at;
};

// The values of a symbol, by layer.
struct symbol {
    int64_t layers; // At least 1; of slots that place-buffers gave a row more, with that one.
    struct tensor **value;
    struct tensor **gradient;
    struct routed **routed; // For sets: rows_ranks.c.
};

struct machine {
    MlirOperation module;
    const struct interpret_options *options;
    struct hec_arena *arena;
    struct hec_map value;  // MlirValue to struct tensor *.
    struct hec_map symbol; // MlirOperation to struct symbol *.
    int64_t work;          // Elements and multiplications so far.
    jmp_buf end;
    const char *fault;
    bool too_large;
};

// Ends the run: `op` has no meaning here.
_Noreturn void fault(struct machine *m, MlirOperation op, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

// Counts work before it is done; too much of it is a fault.
void spend(struct machine *m, MlirOperation op, int64_t work);

// A tensor of NaN; the value itself for an operand; the number of an index.
struct tensor *new_tensor(struct machine *m, MlirOperation op, const struct hec_tensor *shape);
const struct tensor *in(struct machine *m, MlirOperation op, int operand);
int64_t index_in(struct machine *m, MlirOperation op, int operand);
bool has_in(MlirOperation op, int operand);
// The result, made: NaN everywhere.
struct tensor *out(struct machine *m, MlirOperation op, int result);
void set_index(struct machine *m, MlirOperation op, double value);
void bind(struct machine *m, MlirValue to, const struct tensor *value);
const struct tensor *value_of(struct machine *m, MlirOperation op, MlirValue v);

// The symbol that attribute `key` names, and the layer: that of operand `operand`, 0 where it is absent.
struct symbol *symbol_of(struct machine *m, MlirOperation op, const char *key);
struct symbol *symbol_named(struct machine *m, MlirOperation op, MlirStringRef name);
int64_t layer_of(struct machine *m, MlirOperation op, const struct symbol *symbol, int operand);

// Strides of the dimensions of `over` in `t`, 0 for those it lacks.
void strides_of(const struct hec_tensor *t, const struct hec_tensor *over, int64_t *stride);
// The offset of element `i` of `over` by these strides.
int64_t offset_of(const struct hec_tensor *over, const int64_t *stride, int64_t i);
int64_t elements(const struct hec_tensor *shape);
void fill(struct tensor *t, double value);
double to_bf16(double value);
// `t`, rounded to bf16 where op has `rounds`.
const struct tensor *rounded(struct machine *m, MlirOperation op, const struct tensor *t);

// Entry k of teacher entries of a token, by its number among the tokens of a call. False: it says nothing of it.
enum { TEACHER_ENTRIES = 3 };
bool teacher_entry(const struct machine *m, int64_t token, int k, int64_t *id, double *log_prob);

// Uniform in -1 .. 1, from a text and numbers alone.
double random_unit(uint64_t seed, const char *text, int64_t a, int64_t b);

// Runs the block up to its terminator, which is returned.
MlirOperation run_block(struct machine *m, MlirBlock block);
// Calls a function with arguments by what they are: rows, where the rows of each expert start, layer.
const struct tensor *call_experts(struct machine *m, MlirOperation op, const char *key,
                                  const struct tensor *rows, const struct tensor *first,
                                  int64_t layer);

typedef void run_op(struct machine *m, MlirOperation op);
run_op run_elementwise, run_norm, run_norm_grad; // Each for several operations.
#define HEC_OP(id, dialect, operands, results, attributes) run_op run_##id;
#include "ir/ops.def"
#undef HEC_OP

// The routing by `ids`: first[e], the pairs in the order of rows, and the row of each pair (-1:
// dropped). `ids` [.., picks]; rows by expert, then token, then pick; behind them the dropped pairs.
struct routing {
    int64_t pairs, topk, experts;
    int64_t *first, *pair, *slot;
};
struct routing route_rows(struct machine *m, MlirOperation op, const struct tensor *ids,
                          int64_t experts);

#endif
