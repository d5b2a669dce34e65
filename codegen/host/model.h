// The struct of the emitted program, and the functions that bind its pointers.
#ifndef HECATE_CODEGEN_HOST_MODEL_H
#define HECATE_CODEGEN_HOST_MODEL_H

#include "codegen/host/emitter.h"

void hec_model_struct(struct hec_emitter *e, struct hec_writer *out);
// Where each expert's parameters lie in its chunk.
void hec_model_offsets(struct hec_emitter *e, struct hec_writer *out);
void hec_model_bind(struct hec_emitter *e, struct hec_writer *out);
// Nothing where no GEMM rounds (hec_has_rounded).
void hec_model_bind_rounded(struct hec_emitter *e, struct hec_writer *out);

#endif
