// stash and accumulate: where they write. Nothing is written where the value was computed in its place.
#ifndef HECATE_CODEGEN_HOST_KEYED_H
#define HECATE_CODEGEN_HOST_KEYED_H

#include "codegen/host/home.h"

// The home that a stash or an accumulate writes to.
struct hec_home hec_keyed_home(struct hec_emitter *e, MlirOperation op);

// Whether the operand of `op`, a stash or an accumulate, was computed there.
bool hec_is_in_place(struct hec_emitter *e, MlirOperation op);

#endif
