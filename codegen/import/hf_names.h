// Whether each parameter of a model has a name in the family that its `names hf { family = ... }` says.
#ifndef HECATE_CODEGEN_IMPORT_HF_NAMES_H
#define HECATE_CODEGEN_IMPORT_HF_NAMES_H

#include <stdbool.h>

#include "lang/base/diag.h"
#include "lang/program.h"

// Reports parameters without a name, and those that would share one, each at its place. True: there are none, or the
// model says no family.
bool hec_check_names(const struct hec_program *program, struct hec_diag *diag);

#endif
