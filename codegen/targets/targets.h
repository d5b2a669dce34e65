// The targets of hecatec, and their back ends.
#ifndef HECATE_CODEGEN_TARGETS_TARGETS_H
#define HECATE_CODEGEN_TARGETS_TARGETS_H

#include <stdio.h>

#include "codegen/host/back_end.h"

// The back end of the module's target; that of a target by its name, NULL: there is none.
const struct hec_back_end *hec_back_end_of(MlirOperation module);
const struct hec_back_end *hec_back_end_named(const char *name);

// Whether --target may be `text`: a target with a record and, behind a colon, one of its architectures. False
// after a complaint that lists what it can be.
bool hec_target_check(const char *text);

// Lists all targets, for --print-targets.
void hec_targets_print(FILE *out);

#endif
