// The basis of a plan: model, cluster and loads, so that a plan of another basis is noticed.
//
//   "made_for": {"model": "gpt_moe_s", "parameters": "9f0c...", "loads": "assumed",
//                "cluster": {"cluster.nodes": "4", ...}}
//
// parameters: a hash of names and sizes; loads: of the bytes of the file they were recorded in.
#ifndef HECATE_PASSES_PLAN_ORIGIN_H
#define HECATE_PASSES_PLAN_ORIGIN_H

#include "passes/base/json_file.h"

// The basis of a plan of the module. The caller gives it back.
json_t *hec_plan_origin(MlirOperation module);

// Reports each difference, as a text, between "made_for" of the plan at `path` and the module: the plan counts all the
// same. Nothing for one that has none, or cannot be read.
void hec_plan_compare_origin(MlirOperation module, const char *path,
                             void (*tell)(void *context, const char *text), void *context);

#endif
