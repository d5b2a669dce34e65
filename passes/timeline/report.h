// --simulate.
#ifndef HECATE_PASSES_TIMELINE_REPORT_H
#define HECATE_PASSES_TIMELINE_REPORT_H

#include <stdio.h>

#include "ir/core/op.h"

enum { HEC_SIMULATE_STEPS_MAX = 10000 };

// Simulates `steps` steps (0: as many as say enough) of the placed module on all devices of its cluster, and
// prints how long they take and the uses of that time; with `json` for programs (docs/simulate.md). With
// `trace`, every device's lanes, as JSON of the Chrome trace format. False after a report.
bool hec_simulate_report(MlirOperation module, int64_t steps, bool json, FILE *out, FILE *trace);

#endif
