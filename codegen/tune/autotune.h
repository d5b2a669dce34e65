// --autotune: the settings that simulated steps are shortest with.
#ifndef HECATE_CODEGEN_TUNE_AUTOTUNE_H
#define HECATE_CODEGEN_TUNE_AUTOTUNE_H

#include "codegen/stages/compilation.h"

// Whether --autotune fits the rest of the command line; false after a complaint.
bool hec_check_autotune(struct hec_compilation *c);

// Simulates candidates, reports to standard error what was chosen and why, and puts the chosen settings behind those of
// the command line. The same input gives the same choice, unless the report says that the clock ended the search. A
// model that cannot be simulated is left to its own compilation, which says why. With --measure the best are built and
// run, and that decides. Returns the exit status.
int hec_autotune(struct hec_compilation *c);

#endif
