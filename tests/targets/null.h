// Target null: the smallest one. Its programs print what they would compute, operation by operation, and
// compute nothing. docs/targets.md walks through it.
#ifndef HECATE_TESTS_TARGETS_NULL_H
#define HECATE_TESTS_TARGETS_NULL_H

#include "codegen/host/printer.h"

extern const struct hec_printer null_printer;

#endif
