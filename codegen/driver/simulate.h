// --simulate: no program, but how long its steps would take.
#ifndef HECATE_CODEGEN_DRIVER_SIMULATE_H
#define HECATE_CODEGEN_DRIVER_SIMULATE_H

#include "codegen/stages/compilation.h"

// Whether --simulate and --trace fit together and with the rest of the command line; false after a complaint.
bool hec_check_simulation(struct hec_compilation *c);

// Simulates the placed module; the report goes to -o or standard output, the trace to --trace. Returns the exit status.
int hec_finish_simulation(struct hec_compilation *c);

#endif
