// The passes of a compilation, and prints and saves after each of them.
#ifndef HECATE_CODEGEN_STAGES_RUN_PASSES_H
#define HECATE_CODEGEN_STAGES_RUN_PASSES_H

#include "codegen/stages/compilation.h"

// Runs those between `from` and `to`. Returns whether the compilation goes on; else sets the exit status.
bool hec_run_passes(struct hec_compilation *c, int *status);

// Homes that place-buffers has not just given are proven before anything is made of them; false after a
// complaint.
bool hec_prove_homes(struct hec_compilation *c);

#endif
