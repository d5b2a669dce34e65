// The symbols of the module: parameters, sets and slots; their names in the program, and their knowledge
// of each other.
#ifndef HECATE_CODEGEN_HOST_SYMBOLS_H
#define HECATE_CODEGEN_HOST_SYMBOLS_H

#include "codegen/host/emitter.h"

// Symbol operations of one kind, in the module's order. Free `op`.
struct hec_ops hec_symbols(struct hec_emitter *e, enum hec_op kind);
const char *hec_member(struct hec_emitter *e,
                       MlirOperation symbol); // Member of struct param or saved.
bool hec_in_set(MlirOperation param);
MlirOperation hec_set_of(struct hec_emitter *e, MlirOperation param); // Null: none.
// Whether GEMMs read a bf16 copy of a parameter; of a set: of one of its experts' parameters.
bool hec_is_rounded(struct hec_emitter *e, MlirOperation symbol);
// Whether ranks keep parts of it (parallel.dense = shard): the runtime says where it comes when it is needed.
bool hec_is_cut(struct hec_emitter *e, MlirOperation symbol);
// Whether of such a parameter the copy in bf16 comes alone.
bool hec_comes_as_copy(struct hec_emitter *e, MlirOperation symbol);
bool hec_has_rounded(struct hec_emitter *e);                       // Whether any parameter has one.
const char *hec_experts(struct hec_emitter *e, MlirOperation set); // The constant for its experts.
// The slot in which `set` keeps its loads, and the set of such a slot; null: there is none.
MlirOperation hec_loads_of(struct hec_emitter *e, MlirOperation set);
MlirOperation hec_set_of_loads(struct hec_emitter *e, MlirOperation slot);
// Where a symbol stands in the program's table of its kind; -1: it does not.
int hec_set_index(struct hec_emitter *e, MlirStringRef name);
int hec_param_index(struct hec_emitter *e, MlirStringRef name);

// Gradients that are complete together (fssdp.all_reduce): whether `op` is such a bucket, and where it
// stands in their table.
bool hec_is_bucket(MlirOperation op);

// Operations that bring and forget dense parameters, and the number of those of `op` among the program's units.
bool hec_is_unit(MlirOperation op);
int hec_unit_index(struct hec_emitter *e, MlirOperation op);
int hec_bucket_index(struct hec_emitter *e, MlirOperation op);

// The operation that counts a step's loads of `set`, or of any set when that is null; null: there is
// none.
MlirOperation hec_step_loads_of(struct hec_emitter *e, MlirOperation set);
bool hec_counts_steps(struct hec_emitter *e); // Whether losses are per batch.
bool hec_has_noise(struct hec_emitter *e);    // Whether routers have jitter, or values dropout.
bool hec_has_teacher(struct hec_emitter *e);  // Whether losses are against teacher entries.
bool hec_has_weights(struct hec_emitter *e);  // Whether losses of tokens are weighted.
bool hec_has_movement(struct hec_emitter *e); // Whether experts move.

#endif
