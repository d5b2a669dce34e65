// accumulate: where it adds. Nothing is written where the value was computed in its place.
#ifndef HECATE_CODEGEN_HOST_GRADIENT_H
#define HECATE_CODEGEN_HOST_GRADIENT_H

#include "codegen/host/home.h"

// The home that `accumulate` adds to: of a layer that a constant names, or of the current one.
struct hec_home hec_gradient_home(MlirOperation accumulate);

// Whether its operand was added there when it was computed.
bool hec_is_in_place(struct hec_emitter *e, MlirOperation accumulate);

#endif
