// The proof of homes, for all that rely on them.
#ifndef HECATE_PASSES_HOMES_PROVE_H
#define HECATE_PASSES_HOMES_PROVE_H

#include "ir/core/ir.h"

// Runs the placed module, which must verify, on tokens instead of numbers: each write leaves the name of
// its value on the bytes of its home, each read must find the name it wants there. Reports the first
// faults. The same module gives the same answer. Without hecate.arena_bytes the arena has no end.
bool hec_homes_prove(MlirOperation module);

// Whether units of dense parameters, and their gradients, have places of their own while they are in use
// (homes/units.c). Reports the first that has not. Modules without hecate.unit_bytes pass.
bool hec_prove_units(MlirOperation module);

#endif
