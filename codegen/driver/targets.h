// The targets of hecatec, and their printers.
#ifndef HECATE_CODEGEN_DRIVER_TARGETS_H
#define HECATE_CODEGEN_DRIVER_TARGETS_H

#include <stdio.h>

#include "codegen/host/printer.h"

// The printer of the module's target; NULL: its programs cannot be written yet.
const struct hec_printer *hec_target_printer(MlirOperation module);

// Whether --target may be `text`: a target with a record and, behind a colon, one of its architectures. False
// after a complaint that lists what it can be.
bool hec_target_check(const char *text);

// Lists all targets, for --print-targets.
void hec_targets_print(FILE *out);

#endif
