// Properties that every pass takes for granted about a module and MLIR does not check.
#ifndef HECATE_PASSES_FORM_H
#define HECATE_PASSES_FORM_H

#include "ir/core/op.h"

// Whether `module` is in the form that passes and codegen work on: only operations of the op table;
// functions of one block; loops over constant layers 0, 1, ... that carry tensors; @forward and
// @backward, where there are such, functions. Text may say more, and so may an upstream pass.
// Reports every fault.
bool hec_check_form(MlirOperation module);

#endif
