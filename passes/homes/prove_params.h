// The proof of where parameters lie.
#ifndef HECATE_PASSES_HOMES_PROVE_PARAMS_H
#define HECATE_PASSES_HOMES_PROVE_PARAMS_H

#include "ir/core/ir.h"

// Whether every parameter, and every chunk of a set, has its place: inside of hecate.param_elements, aligned,
// apart from all others, with room for its matrix in its layout. Reports each that has not. Modules without
// hecate.param_elements pass.
bool hec_prove_params(MlirOperation module);

#endif
