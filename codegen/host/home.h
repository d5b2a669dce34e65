// Where values live, for the emitter: ir/core/home.h, with faults.
#ifndef HECATE_CODEGEN_HOST_HOME_H
#define HECATE_CODEGEN_HOST_HOME_H

#include "codegen/host/emitter.h"
#include "ir/core/home.h"

struct hec_home hec_value_home(struct hec_emitter *e, MlirValue value);
MlirOperation hec_home_symbol(struct hec_emitter *e, const struct hec_home *home); // Null: none.

#endif
