// Bodies of units.
#ifndef HECATE_IR_BUILD_BODY_H
#define HECATE_IR_BUILD_BODY_H

#include "ir/build/scope.h"

// Builds items into the scope; values are in build->value afterwards.
void hec_build_body(struct hec_scope *scope, const struct hec_body *body);

#endif
