// Where a value lives: the attributes `home` and `argument_home`. This is their only reader and
// their only writer.
//
//   "arena+4096"   "slot @h[i]"   "slot @x[i+1]"   "slot @x[4]"   "slot @logits"
//   "param @w[i]"  "grad @w"      "ids" "targets" "scale" "auxiliary_scale"   "none"
#ifndef HECATE_IR_CORE_HOME_H
#define HECATE_IR_CORE_HOME_H

#include "ir/core/op.h"

enum hec_home_kind {
    HEC_HOME_NONE, // For results that are no tensors.
    HEC_HOME_ARENA,
    HEC_HOME_SLOT,
    HEC_HOME_PARAM,
    HEC_HOME_GRAD,
    HEC_HOME_ARGUMENT, // For @forward and @backward: handed in by the caller.
};

enum hec_home_row {
    HEC_ROW_ONLY,  // The symbol has no layers.
    HEC_ROW_LAYER, // The current layer of the enclosing loop.
    HEC_ROW_NEXT,  // The row after it; of slots only.
    HEC_ROW_FIXED, // `at`.
};

struct hec_home {
    enum hec_home_kind kind;
    enum hec_home_row row;
    MlirStringRef symbol; // For slot, param and grad.
    int64_t at;           // Byte offset in the arena, the fixed row, or the argument's number.
};

enum { HEC_ARGUMENTS = 4 };
extern const char *const hec_argument_homes
    [HEC_ARGUMENTS]; // Homes of the arguments of @forward and @backward, in order.

MlirAttribute hec_home_attribute(MlirContext context, const struct hec_home *home);

// The home of a result, of an argument of a function or of what a loop carries. The symbol borrows from
// the attribute. False when it has none, or one that hec_home_verify would refuse.
bool hec_home_of(MlirValue value, struct hec_home *home);
// Whether the operation that makes `value` adds to the value at its home, as `adds` says.
bool hec_home_adds(MlirValue value);
bool hec_home_equal(const struct hec_home *a, const struct hec_home *b);

// Checks `home`, `argument_home` and `adds` of `op`, where it has them: one for each value, each readable,
// in a symbol that exists, with a row where the symbol has rows. Reports the first fault. Whether the
// bytes exist, and hold what is read, is proven by passes/homes/prove.c.
bool hec_home_verify(MlirOperation op);

#endif
