// Stages by name: the values of --compile-to, --compile-from and --print-ir-after.
#ifndef HECATE_CODEGEN_STAGES_STAGES_H
#define HECATE_CODEGEN_STAGES_STAGES_H

#include "codegen/stages/compilation.h"

// Lists all stages in their order, for --print-stages.
void hec_stages_print(FILE *out);

// The stage called `name`; false after a complaint about `flag`.
bool hec_find_stage(struct hec_compilation *c, const char *flag, const char *name, int *stage);

// Sets `from` and `to`, the first stage to compute and the last one, as the options ask; false after a
// complaint.
bool hec_choose_stages(struct hec_compilation *c);

#endif
