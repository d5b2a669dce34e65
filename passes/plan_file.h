// Plan files: the choices of movement and the owners, so that a build can be repeated, or changed by
// hand. JSON:
//
//   {"hecate_plan": 1, "world": 8,
//    "movement": {"policy": "fssdp", "even": false, "overlap": 3, "slots": 4, ...},
//    "sets": {"sparse": {"layers": 12, "experts": 64, "owner": [[0, 0, ...], ...],
//                        "forecast": [[[...], ...], ...]}}}
//
// Behind these stands its origin (plan_origin.h); and where --autotune has chosen settings of section
// parallel, which ones, the time of a step with it, and the other candidates:
//
//    "settings": {"parallel.microbatch": "16", ...},
//    "predicted": {"step_us": 8001, "error": 0.06, "runners_up": [{"step_us": 12400, "settings": {...}}, ...]}
//
// Where --measure has run candidates, it lists their cluster and times; one that could not be run says why:
//
//    "measured": {"step_us": 8320, "machine": "n0", "launch": "mpirun -n 8", "route": "zipf:1.2", "rounds": 5, "steps":
// 15, "left_out": 5,
//                 "others": [{"step_us": 12900, "settings": {}}, {"failed": "...", "settings": {...}}]}
//
// owner is [layers][experts], forecast [layers][ranks][experts]; both may be missing, as in the module.
#ifndef HECATE_PASSES_PLAN_FILE_H
#define HECATE_PASSES_PLAN_FILE_H

#include <stdio.h>

#include "lang/base/arena.h"
#include "passes/base/movement.h"

// Sets hecate.movement and the sets' owner and forecast from the file that the module's hecate.plan
// names. The file is not trusted: false after a report that names its fault.
bool hec_plan_read(MlirOperation module);

enum { HEC_PLAN_TUNED = 9 };

struct hec_plan_settings {
    const char *const *set; // "KEY=VALUE"
    int count;
    double us; // Time of a step.
};

// Candidates that were run.
struct hec_plan_measured {
    const char *machine, *launch, *route;
    int rounds, steps, left_out; // Steps of a run, and of these the first ones, which do not count.
    int chosen, count;
    struct hec_plan_run {
        struct hec_plan_settings settings;
        const char *failed; // NULL: it ran.
    } of[HEC_PLAN_TUNED];
};

// The candidates: the first one was chosen.
struct hec_plan_tuned {
    double error;                             // Error of a step's time, as a share.
    const struct hec_plan_measured *measured; // NULL: nothing was run.
    int count;
    struct hec_plan_settings of[HEC_PLAN_TUNED];
};

// Writes the module's choices; `tuned` may be NULL. False when nothing moves in it.
bool hec_plan_write(MlirOperation module, const struct hec_plan_tuned *tuned, FILE *out);

// The settings that the plan at `path` says ("KEY=VALUE", of `arena`), for the compilation that it belongs to. None of
// a file that cannot be read, which hec_plan_read complains of.
struct hec_plan_settings hec_plan_settings(const char *path, struct hec_arena *arena);

#endif
