// What a plan was made for: model, cluster and loads, so that one of another is told.
//
//   "made_for": {"model": "gpt_moe_s", "parameters": "9f0c...", "loads": "assumed",
//                "cluster": {"cluster.nodes": "4", ...}}
//
// parameters: a hash of names and sizes; loads: of the bytes of the file they were recorded in.
#ifndef HECATE_PASSES_PLAN_ORIGIN_H
#define HECATE_PASSES_PLAN_ORIGIN_H

#include "passes/json_file.h"

// What a plan of the module is made for. The caller gives it back.
json_t *hec_plan_origin(MlirOperation module);

// Tells, one text for each, what of "made_for" of the plan at `path` is not so of the module: the plan counts all the same. Nothing of one that
// has none, or cannot be read.
void hec_plan_compare_origin(MlirOperation module, const char *path,
                             void (*tell)(void *context, const char *text), void *context);

#endif
