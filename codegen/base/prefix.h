// The installation that this executable belongs to: PREFIX/bin, PREFIX/include, PREFIX/lib.
#ifndef HECATE_CODEGEN_BASE_PREFIX_H
#define HECATE_CODEGEN_BASE_PREFIX_H

#include <stdbool.h>

#include "lang/base/arena.h"

// The folder that holds bin, include and lib; NULL when the executable cannot be found.
const char *hec_prefix(struct hec_arena *arena);

// Whether the runtime's headers are where they belong; complains where they are not.
bool hec_have_headers(struct hec_arena *arena);

#endif
