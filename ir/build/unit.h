// Units.
#ifndef HECATE_IR_BUILD_UNIT_H
#define HECATE_IR_BUILD_UNIT_H

#include "ir/build/scope.h"

// Builds the function of `unit` and a call of it.
struct hec_called hec_build_call(struct hec_scope *scope, const struct hec_unit *unit, int operands,
                                 const MlirValue *operand);

#endif
