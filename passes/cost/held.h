// The parts of parameters, gradients, states and copies that a rank of a placed module holds. The planner
// describes them (runtime/plan/held.h); this makes its description from the module's parameters and sets.
#ifndef HECATE_PASSES_COST_HELD_H
#define HECATE_PASSES_COST_HELD_H

#include "ir/core/ir.h"
#include "lang/base/arena.h"
#include "runtime/plan/held.h"

// Bytes of a buffer.
struct hec_held_bytes {
    int64_t all, outside; // On the fullest rank, and the part of it outside of experts.
    int64_t ep;           // As `all`, with the first owners of expert parallelism, for good.
    int64_t model, model_outside; // The same of the whole model, each element once.
};

// In the memory of the module's target. The module has been through place-buffers. Lists lie in the arena.
struct hec_held_bytes hec_held_bytes(struct hec_arena *arena, MlirOperation module,
                                     enum hpl_buffer buffer);

// Bytes of an element of parameters.
int64_t hec_held_element_bytes(MlirOperation module);

#endif
