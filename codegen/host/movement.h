// Tables of how experts move: choices, first owners, forecast.
#ifndef HECATE_CODEGEN_HOST_MOVEMENT_H
#define HECATE_CODEGEN_HOST_MOVEMENT_H

#include "codegen/host/emitter.h"

// The tables of all sets, then `movement`; nothing where experts stay.
void hec_emit_movement(struct hec_emitter *e, struct hec_writer *out);
// The name of the set's table `key`, "owner" or "forecast"; NULL: it has none.
const char *hec_set_table(struct hec_emitter *e, MlirOperation set, const char *key);

#endif
