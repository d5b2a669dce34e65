// Blocks with their own parallel.recompute.
#ifndef HECATE_IR_BUILD_RECOMPUTE_H
#define HECATE_IR_BUILD_RECOMPUTE_H

#include "ir/build/scope.h"

// Writes the word of parallel.recompute for the unit's block, if it has one, into hecate.recompute, by the name of its
// function.
void hec_build_recompute(struct hec_build *build, const struct hec_unit *unit, MlirOperation func);

#endif
