// Where a value lives: what the attributes `home` and `argument_home` say.
//
//   "arena+4096"   "slot @h[i]"   "slot @x[i+1]"   "slot @x[4]"   "slot @logits"
//   "param @w[i]"  "grad @w"      "ids" "targets" "scale" "share"
#ifndef HECATE_PASSES_PLACE_HOME_H
#define HECATE_PASSES_PLACE_HOME_H

#include <stdio.h>

#include "ir/op.h"

enum hec_home_kind {
    HEC_HOME_NONE, // No tensor.
    HEC_HOME_ARENA,
    HEC_HOME_SLOT,
    HEC_HOME_PARAM,
    HEC_HOME_GRAD,
    HEC_HOME_ARGUMENT, // Of the function: handed in by the caller.
};

enum hec_home_row {
    HEC_ROW_ONLY,  // The symbol has no layers.
    HEC_ROW_LAYER, // The current layer of the enclosing loop.
    HEC_ROW_NEXT,  // The row after it.
    HEC_ROW_FIXED, // `at`.
};

struct hec_home {
    enum hec_home_kind kind;
    enum hec_home_row row;
    MlirStringRef symbol; // Of slot, param and grad; of an argument its name.
    int64_t at;           // Byte offset in the arena, or the fixed row.
};

enum { HEC_ARGUMENTS = 4 };
extern const char *const hec_argument_homes[HEC_ARGUMENTS]; // Of @forward and @backward.

void hec_home_write(const struct hec_home *home, FILE *out);
MlirAttribute hec_home_attribute(MlirContext context, const struct hec_home *home);

// Reads what hec_home_write wrote. The symbol borrows from `text`. False when it is no home.
bool hec_home_read(MlirStringRef text, struct hec_home *home);

// The home of result `index` of `op` or, with key "argument_home", of argument `index` of its body;
// false when the attribute lacks it.
bool hec_home_of(MlirOperation op, const char *key, int index, struct hec_home *home);

#endif
