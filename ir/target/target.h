// Targets: the machines that programs are compiled for, as far as passes, proofs and the verifier have to know them.
//
// The module's attribute `target` names one: "cpu", or "cuda:sm_90a" with an architecture. No pass asks for
// the name: facts that it needs are fields of the record.
#ifndef HECATE_IR_TARGET_TARGET_H
#define HECATE_IR_TARGET_TARGET_H

#include "ir/core/ir.h"

// A way to store the elements of weights that GEMMs read as bf16: in a panel, `rows` rows take `block_bytes`.
struct hec_packing {
    const char *name; // As a value of adapt.base; NULL behind the last.
    int64_t rows, block_bytes;
};

// codegen/targets/NAME/facts.c.
struct hec_target {
    const char *name;
    const char *architectures; // Choices behind "name:", with | between them; NULL: none may.
    const char *compiled_for;  // Those that "name:all" is.
    int panel_columns; // Weights of GEMMs lie in panels of so many columns; 0: all lie as rows.
    int align_bytes; // Alignment of everything in the arena, of every parameter and every copy of one.
    bool apart;      // Tensors lie in a device's memory.
    int64_t page_bytes;    // A rank takes that memory in such pages; 0: memory of the host.
    int64_t scratch_bytes; // Bytes of that memory, for kernels.
    bool epilogues;        // Products call back for each block of their result.
    bool bf16_values; // With train.precision = bf16 tensors of tokens are kept as bf16, and GEMMs
                      // read them so; otherwise all is f32, and GEMMs round as they read.
    bool gathers; // Products of experts can read tokens' rows by a route: moe.gathered_contract.
    const struct hec_packing *packings; // Frozen weights may stay so; NULL: they cannot.
    bool swiglu; // Two of them, and the loop that gates one by the other, can be one: moe.swiglu.
};

#define HEC_TARGET(name, text, lacks) extern const struct hec_target hec_target_##name;
#include "codegen/targets/targets.def"

// The target that `text` names; NULL: there is none, or it has no such architecture.
const struct hec_target *hec_target_find(MlirStringRef text);

// The target of the module that `op` is or stands in: cpu, where it names none. The module must name one
// that exists, which the verifier checks. For an operation outside of modules: cpu.
const struct hec_target *hec_target_of(MlirOperation op);

// Checks that the module's target exists and can do what the module's settings ask for; reports the ones that it lacks.
bool hec_target_verify(MlirOperation module);

#endif
