// The placement of experts, where the model leaves it to the compiler (parallel.experts = auto).
#ifndef HECATE_CODEGEN_TUNE_POLICY_H
#define HECATE_CODEGEN_TUNE_POLICY_H

#include "codegen/stages/compilation.h"

// Simulates steps of the program with each of a few placements, on several ranks, and returns options with the
// fastest one that fits into the device's memory; among those within 1 % of it with the simplest. Names the steps of
// all on standard error. NULL: the model names a placement, or there is one process. The same input gives the same
// choice. It takes a compilation and a simulation for each placement.
const struct hec_options *hec_choose_policy(struct hec_compilation *c);

#endif
