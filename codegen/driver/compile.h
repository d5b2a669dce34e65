// One compilation: from the command line to the file it asks for.
#ifndef HECATE_CODEGEN_DRIVER_COMPILE_H
#define HECATE_CODEGEN_DRIVER_COMPILE_H

#include "codegen/base/options.h"

// Returns the exit status (status.h).
int hec_compile(struct hec_arena *arena, const struct hec_options *options);

#endif
