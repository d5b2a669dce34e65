// The parts of the builder, between its own files only.
#ifndef HECATE_IR_BUILD_PARTS_H
#define HECATE_IR_BUILD_PARTS_H

#include "ir/build.h"
#include "ir/op.h"

struct hec_build {
    MlirContext context;
    const struct hec_program *program;
    MlirOperation module;
    MlirType real, i32, index;
    int64_t batch, world;  // Sequences of a microbatch; ranks.
    int64_t group;         // Sequences that picks are counted over; 0: all of an iteration.
    struct hec_map value;  // struct hec_node -> the pointer of its MlirValue
    struct hec_map loop;   // struct hec_loop -> its scf.for
    struct hec_map symbol; // struct hec_param -> its moe.param, struct hec_moe -> its moe.set
    struct hec_map loads;  // struct hec_moe -> the moe.slot of its loads
    bool failed;           // An error was reported; values may be null from there on.
};

// What layers add up for the loss. A null value: no layer has any.
enum hec_sum {
    HEC_SUM_AUXILIARY, // Losses of one layer.
    HEC_SUM_MEANS,     // Mean scores and fractions of layers that have one loss together.
    HEC_SUM_FRACTIONS,
    HEC_SUMS
};

struct hec_sums {
    MlirValue of[HEC_SUMS];
};

// The function that is being built, and the place in it.
struct hec_scope {
    struct hec_build *build;
    struct hec_builder b;
    MlirOperation func;
    MlirValue layer;      // Null when not under a repeat.
    struct hec_sums sums; // Of the layers so far.

    // Bodies of experts work on all rows of all experts: [rows, D] instead of [batch, T, D].
    const struct hec_moe *expert_of; // Or NULL.
    MlirValue first;
};

// Result of a call: the value, and what the unit's layers add up.
struct hec_called {
    MlirValue value;
    struct hec_sums sums;
};

// ---- build.c

// A symbol that nothing in the module has yet: `wanted`, or with a number appended. Caller frees.
char *hec_build_symbol(struct hec_build *build, const char *wanted);
void hec_build_error(struct hec_build *build, struct hec_span at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
MlirLocation hec_build_location(struct hec_build *build, struct hec_span at, const char *name);
// Points the builder at a place of the source; `name` is that of the value, or NULL.
void hec_build_at(struct hec_scope *scope, struct hec_span at, const char *name);
// The type of a value of the language, in this scope.
MlirType hec_build_type(const struct hec_scope *scope, const struct hec_shape *shape, bool batched,
                        bool integer);

// ---- build_unit.c

// Adds `more` to `sums`, at the place of the builder.
void hec_build_sum(struct hec_scope *scope, struct hec_sums *sums, const struct hec_sums *more);
// Builds items into the scope; values are in build->value afterwards.
void hec_build_body(struct hec_scope *scope, const struct hec_body *body);
// Builds the function of `unit` and a call of it.
struct hec_called hec_build_call(struct hec_scope *scope, const struct hec_unit *unit, int operands,
                                 const MlirValue *operand);
// Begins the function `name` for `unit`, before the function of `caller`: its arguments, then
// `first` for an expert, then the layer.
struct hec_scope hec_build_begin(struct hec_scope *caller, const struct hec_unit *unit,
                                 const char *name, const struct hec_moe *expert_of);

// ---- build_node.c

// The value of a node that was built.
MlirValue hec_build_value_of(struct hec_scope *scope, const struct hec_node *node);
// Builds one node and records its value.
void hec_build_node(struct hec_scope *scope, const struct hec_node *node);
MlirValue hec_build_get(struct hec_scope *scope, const struct hec_param *param);
// One result (the first) of an operation whose types its row infers; null after an error.
MlirValue hec_build_one(struct hec_scope *scope, int op, int operands, const MlirValue *operand,
                        int attributes, const MlirNamedAttribute *attribute);
MlirValue hec_build_contract(struct hec_scope *scope, MlirValue a, MlirValue b);

// ---- build_moe.c

// Builds what a moe's unit computes from `x`, with what this layer adds to the sums.
struct hec_called hec_build_moe(struct hec_scope *scope, const struct hec_moe *moe, MlirValue x);
// The layers that have one auxiliary loss together, and one of their mixtures; 0: there are none.
int64_t hec_build_joint(const struct hec_program *program, const struct hec_moe **moe);

#endif
