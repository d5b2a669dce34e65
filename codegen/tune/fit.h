// Settings that make a program fit into its device's memory, where the user leaves them open.
#ifndef HECATE_CODEGEN_TUNE_FIT_H
#define HECATE_CODEGEN_TUNE_FIT_H

#include "codegen/stages/compilation.h"

// Compares the placed module with its device's memory. Where it needs more, and settings of section parallel that were
// not given can make it fit, returns options with the fastest ones found, by simulated steps, and names them and their
// costs on standard error. NULL: it stays as it is. In both cases the module gets lines for --explain=memory
// (hecate.fit), unless it fits as it is: that costs nothing. A plan and --autotune have chosen already.
// The same input gives the same choice.
const struct hec_options *hec_fit(struct hec_compilation *c);

// Passes the lines on to the module that was compiled with the chosen settings.
void hec_fit_note(struct hec_compilation *c);

#endif
