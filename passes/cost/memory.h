// The memory that a device or process of a placed module holds, item by item: the one sum that reports print, that the
// search has room beside, and that choices of the compiler must fit into.
#ifndef HECATE_PASSES_COST_MEMORY_H
#define HECATE_PASSES_COST_MEMORY_H

#include "ir/core/ir.h"

enum hec_memory_item {
    HEC_MEMORY_PARAMETERS,
    HEC_MEMORY_COPIES, // In bf16, that GEMMs read.
    HEC_MEMORY_GRADIENTS,
    HEC_MEMORY_STATES, // The optimizer's, both.
    HEC_MEMORY_HELD,   // The items so far: each is of parameters.
    HEC_MEMORY_ARENA = HEC_MEMORY_HELD,
    HEC_MEMORY_REPLICAS, // Experts that others own.
    HEC_MEMORY_ROWS,     // Between ranks, and the like (passes/cost/under_way.h).
    HEC_MEMORY_SUMS,
    HEC_MEMORY_UNITS,
    HEC_MEMORY_MESSAGES,
    HEC_MEMORY_MUON,    // Its scratch.
    HEC_MEMORY_SCRATCH, // Room of kernels.
    HEC_MEMORY_PROGRAM, // The process itself, where it has no device.
    HEC_MEMORY_ITEMS
};

// For programs, and for people.
struct hec_memory_name {
    const char *key, *text;
};
extern const struct hec_memory_name hec_memory_names[HEC_MEMORY_ITEMS];

// In bytes, of the fullest rank.
struct hec_memory {
    int64_t item[HEC_MEMORY_ITEMS];
    int64_t outside[HEC_MEMORY_HELD]; // The part of it outside of experts.
    int64_t ep[HEC_MEMORY_HELD];      // The item under expert parallelism.
    // The same of the whole model, each element once.
    int64_t model[HEC_MEMORY_HELD], model_outside[HEC_MEMORY_HELD];
    int64_t all;    // The items together.
    int64_t host;   // States that lie in memory of the host instead.
    int64_t device; // A device's memory, as the model sets it; 0: it does not.
    int64_t ranks;
};

// False: the module has not been through place-buffers.
bool hec_memory_of(MlirOperation module, struct hec_memory *memory);

#endif
