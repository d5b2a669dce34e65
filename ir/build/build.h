// From the checked program to the graph stage of the IR.
#ifndef HECATE_IR_BUILD_BUILD_H
#define HECATE_IR_BUILD_BUILD_H

#include "ir/core/ir.h"
#include "lang/program.h"

// Builds the module of `program`: symbols, one private function per call site, @forward (see
// docs/ir.md). The caller owns it (mlirOperationDestroy). Null after an error, which was reported
// through the context: constructs that the language accepts and the IR cannot express yet. Needs the settings
// train.precision and parallel.microbatch. The same program gives the same module.
MlirOperation hec_ir_build(MlirContext context, const struct hec_program *program);

#endif
