// The function that is being built, and the context of every file of this folder: places of the
// source, names, types.
#ifndef HECATE_IR_BUILD_SCOPE_H
#define HECATE_IR_BUILD_SCOPE_H

#include "ir/build/build.h"
#include "ir/core/op.h"

// The sum over layers for the loss. A null value: no layer has any.
enum hec_sum {
    HEC_SUM_AUXILIARY, // Losses of one layer.
    HEC_SUM_MEANS,     // Mean scores and fractions of layers that have one loss together.
    HEC_SUM_FRACTIONS,
    HEC_SUMS
};

struct hec_sums {
    MlirValue of[HEC_SUMS];
};

// Result of a call: the value, and the sums of the unit's layers.
struct hec_called {
    MlirValue value;
    struct hec_sums sums;
};

struct hec_scope;

struct hec_build {
    MlirContext context;
    const struct hec_program *program;
    MlirOperation module;
    MlirType real, i32, index;
    int64_t batch, world; // Sequences of a microbatch; ranks.
    int64_t group;        // Sequences that top-k choices are counted over; 0: all of an iteration.
    struct hec_map value; // struct hec_node -> the pointer of its MlirValue
    struct hec_map loop;  // struct hec_loop -> its scf.for
    struct hec_map
        symbol; // struct hec_param -> its moe.param, hec_moe -> its moe.set, hec_named_loss -> its moe.slot
    struct hec_map loads; // struct hec_moe -> the moe.slot of its loads
    // Builds the function of a unit and a call of it (unit.h). Bodies hold calls and calls have bodies:
    // files that build a unit reach it by this.
    struct hec_called (*call)(struct hec_scope *scope, const struct hec_unit *unit, int operands,
                              const MlirValue *operand);
    MlirValue targets; // Targets of @forward: the token behind each.
    bool failed;       // An error was reported; values may be null from there on.
};

// The function that is being built, and the place in it.
struct hec_scope {
    struct hec_build *build;
    struct hec_builder b;
    MlirOperation func;
    MlirValue layer;      // Null when not under a repeat.
    struct hec_sums sums; // Sums of the layers so far.

    // Bodies of experts work on all rows of all experts: [rows, D] instead of [batch, T, D].
    const struct hec_moe *expert_of; // Or NULL.
    MlirValue first;
};

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

#endif
