// Functions of units.
#ifndef HECATE_IR_BUILD_FUNCTION_H
#define HECATE_IR_BUILD_FUNCTION_H

#include "ir/build/scope.h"

// Begins the function `name` for `unit`, before the function of `caller`: its arguments, then
// `first` for an expert, then the layer.
struct hec_scope hec_build_begin(struct hec_scope *caller, const struct hec_unit *unit,
                                 const char *name, const struct hec_moe *expert_of);

#endif
