// Dimensions as C constants and variables.
#ifndef HECATE_CODEGEN_HOST_DIMS_H
#define HECATE_CODEGEN_HOST_DIMS_H

#include "codegen/host/emitter.h"

// Before anything is written, so that no local variable takes the name of a constant.
void hec_dims_collect(struct hec_emitter *e);
// The constant or variable that holds the size of dimension `index`.
const char *hec_dim(struct hec_emitter *e, const struct hec_tensor *t, int index);
// The name of positions: a constant, or a variable of each function where a call may go on with a sequence.
const char *hec_positions(struct hec_emitter *e);
// The constant for a number of layers.
const char *hec_layers(struct hec_emitter *e, int64_t count);
// How many elements dimensions from .. to-1 have: "batch * T * D"; "1" for none. `hec_factor` puts
// brackets around several factors.
const char *hec_product(struct hec_emitter *e, const struct hec_tensor *t, int from, int to);
const char *hec_factor(struct hec_emitter *e, const struct hec_tensor *t, int from, int to);
const char *hec_dims_text(struct hec_emitter *e, MlirType type); // "[batch, T, D]"
void hec_dims_print(struct hec_emitter *e, struct hec_writer *out);

#endif
