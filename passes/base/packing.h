// Which frozen weights stay packed (adapt.base), and the room that they take.
#ifndef HECATE_PASSES_BASE_PACKING_H
#define HECATE_PASSES_BASE_PACKING_H

#include "ir/target/target.h"

// How the target packs the elements of a parameter, where its weights lie in panels and GEMMs alone read them, rounded;
// NULL: they are not packed. It is frozen, train.precision is bf16, and adapt.base asks for it: mxfp4 of experts alone,
// as models are released; fp8 also of other matrices but heads.
const struct hec_packing *hec_packing_of(MlirOperation module, MlirOperation param);

// The target's way to pack of this name; NULL: it has none.
const struct hec_packing *hec_packing_named(const struct hec_target *target, MlirStringRef name);

// Places of bf16 that a matrix takes in panels of `panel` columns.
int64_t hec_packed_elements(const struct hec_packing *packing, int64_t rows, int64_t columns,
                            int64_t panel);

#endif
