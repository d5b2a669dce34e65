// A simulation for programs that read it.
#ifndef HECATE_PASSES_TIMELINE_REPORT_JSON_H
#define HECATE_PASSES_TIMELINE_REPORT_JSON_H

#include <stdio.h>

#include "passes/timeline/timeline.h"

// Prints the result, all of whose arrays are there, as one object; docs/simulate.md has its keys.
void hec_timeline_json(const struct hec_timeline_request *request,
                       const struct hec_timeline_result *result, FILE *out);

#endif
