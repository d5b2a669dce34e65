// From the input to the IR: the front end and the builder, or IR that comes as text.
#ifndef HECATE_CODEGEN_STAGES_READ_H
#define HECATE_CODEGEN_STAGES_READ_H

#include "codegen/stages/compilation.h"

// Runs lang/ over the model. Returns whether the compilation goes on; else sets the exit status.
bool hec_run_front(struct hec_compilation *c, int *status);

// Builds the module from the program, or reads it; false after a complaint.
bool hec_make_module(struct hec_compilation *c);

#endif
