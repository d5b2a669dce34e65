// The targets of hecatec, and what prints their programs.
#ifndef HECATE_CODEGEN_DRIVER_TARGETS_H
#define HECATE_CODEGEN_DRIVER_TARGETS_H

#include <stdio.h>

#include "codegen/host/printer.h"

// The printer of the target called `name`; NULL: it cannot be compiled for yet, or there is no such
// target.
const struct hec_printer *hec_target_printer(const char *name);

// Lists all targets, for --print-targets.
void hec_targets_print(FILE *out);

#endif
