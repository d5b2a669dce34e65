// One layer of a mixture of experts.
#ifndef HECATE_IR_BUILD_MOE_H
#define HECATE_IR_BUILD_MOE_H

#include "ir/build/scope.h"

// Builds the computation of a moe's unit on `x`, and adds this layer's terms to the sums.
struct hec_called hec_build_moe(struct hec_scope *scope, const struct hec_moe *moe, MlirValue x);

#endif
