// The function `seek` of programs whose forward can go on with a sequence.
#ifndef HECATE_CODEGEN_HOST_SEEK_H
#define HECATE_CODEGEN_HOST_SEEK_H

#include "codegen/host/emitter.h"

// Writes it; nothing for other programs.
void hec_model_seek(struct hec_emitter *e, struct hec_writer *out);

#endif
