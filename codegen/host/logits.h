// The function that gives the runtime logits of some tokens, where there are never logits of all.
#ifndef HECATE_CODEGEN_HOST_LOGITS_H
#define HECATE_CODEGEN_HOST_LOGITS_H

#include "codegen/host/emitter.h"

// Writes the function `logits` of struct hrt_program, behind the others. Returns whether the program has one.
bool hec_emit_logits(struct hec_emitter *e);

// For a slot that holds logits: the number of tokens it has room for, where these are not all; else 0.
int64_t hec_logits_rows(MlirOperation slot);

#endif
