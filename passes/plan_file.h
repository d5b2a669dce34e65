// Plan files: the choices of movement and the owners, so that a build can be repeated, or changed by
// hand. JSON:
//
//   {"hecate_plan": 1, "world": 8,
//    "movement": {"policy": "quota", "even": false, "overlap": 3, "slots": 4, ...},
//    "sets": {"sparse": {"layers": 12, "experts": 64, "owner": [[0, 0, ...], ...],
//                        "forecast": [[[...], ...], ...]}}}
//
// owner is [layers][experts], forecast [layers][ranks][experts]; both may be missing, as in the module.
#ifndef HECATE_PASSES_PLAN_FILE_H
#define HECATE_PASSES_PLAN_FILE_H

#include <stdio.h>

#include "passes/movement.h"

// Sets hecate.movement and the sets' owner and forecast from the file that the module's hecate.plan
// names. The file is not trusted: false after a report that names what is wrong with it.
bool hec_plan_read(MlirOperation module);

// Writes the module's choices. False when nothing moves in it.
bool hec_plan_write(MlirOperation module, FILE *out);

#endif
