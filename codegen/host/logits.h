// What the runtime asks for where there are never logits of all tokens: those of some.
#ifndef HECATE_CODEGEN_HOST_LOGITS_H
#define HECATE_CODEGEN_HOST_LOGITS_H

#include "codegen/host/emitter.h"

// Writes the function `logits` of struct hrt_program, behind the others. Returns whether the program has one.
bool hec_emit_logits(struct hec_emitter *e);

// Of a slot that holds logits: how many tokens it has room for, where these are not all; else 0.
int64_t hec_logits_rows(MlirOperation slot);

#endif
