// The end of a compilation: a report, C, or a program.
#ifndef HECATE_CODEGEN_DRIVER_FINISH_H
#define HECATE_CODEGEN_DRIVER_FINISH_H

#include "codegen/stages/compilation.h"

// The report that was asked for; NULL: none, or one that came earlier.
void (*hec_report_of(const struct hec_compilation *c))(struct hec_compilation *c, FILE *out);

// Each returns the exit status.
int hec_finish_c(struct hec_compilation *c);
int hec_finish_program(struct hec_compilation *c); // Also from C (STAGE_C), which it only compiles.

#endif
