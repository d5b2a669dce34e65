// The memory that programs take beside parameters and tensors, for transfers above all. A program's info announces the
// same, under the same names (runtime/train/memory.c).
#ifndef HECATE_PASSES_COST_UNDER_WAY_H
#define HECATE_PASSES_COST_UNDER_WAY_H

#include "ir/core/ir.h"

// Bytes of a device, or of a process where the target has none.
struct hec_under_way {
    int64_t rows;     // Rows of experts between ranks, and their tables.
    int64_t sums;     // Messages of dense gradients.
    int64_t units;    // Whole units of parameters and gradients (parallel.dense = shard).
    int64_t messages; // Buffers of the transport, estimated.
    int64_t program;  // The process itself.
};

// The module has been through place-buffers.
struct hec_under_way hec_under_way_of(MlirOperation module);

#endif
