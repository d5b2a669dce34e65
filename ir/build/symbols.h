// Symbols of the module.
#ifndef HECATE_IR_BUILD_SYMBOLS_H
#define HECATE_IR_BUILD_SYMBOLS_H

#include "ir/build/scope.h"

// Builds sets, parameters and the slots of loads and logits. Their operations are in `symbol` and
// `loads` of `build` then.
void hec_build_symbols(struct hec_build *build);

#endif
