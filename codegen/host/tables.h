// The tables at the end of the emitted program, and its main().
#ifndef HECATE_CODEGEN_HOST_TABLES_H
#define HECATE_CODEGEN_HOST_TABLES_H

#include "codegen/host/emitter.h"

void hec_emit_tables(struct hec_emitter *e, struct hec_writer *out);

#endif
