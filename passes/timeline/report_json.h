// Simulations for programs (docs/simulate.md, --json).
#ifndef HECATE_PASSES_TIMELINE_REPORT_JSON_H
#define HECATE_PASSES_TIMELINE_REPORT_JSON_H

#include <stdio.h>

#include "passes/timeline/estimate.h"

// The estimate has all of its results.
void hec_timeline_json(MlirOperation module, const struct hec_estimate *estimate, FILE *out);

#endif
