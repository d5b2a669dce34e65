// Which values of @forward have a gradient worth computing.
#ifndef HECATE_PASSES_ACTIVE_H
#define HECATE_PASSES_ACTIVE_H

#include "ir/core/op.h"

// Adds to `active` (value -> 1) every real value of `forward` that depends on a trainable parameter
// through operations with a gradient rule. Reports a call, and an operation of an unknown dialect
// that reads such a value, and returns false.
bool hec_find_active(MlirOperation forward, struct hec_map *active);

#endif
