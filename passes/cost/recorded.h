// Loads to plan with: of a file, or assumed.
#ifndef HECATE_PASSES_COST_RECORDED_H
#define HECATE_PASSES_COST_RECORDED_H

#include "passes/cost/setup.h"

// Fills in setup->loads (and recorded, recorded_times). The file of the module's hecate.recorded_loads must
// have the experts and layers of its sets; its devices may be regrouped: several become one, or one
// is divided evenly. False after a report at the module.
bool hec_recorded_read(MlirOperation module, struct hec_arena *arena, struct hec_setup *setup);
void hec_recorded_free(struct hec_setup *setup);

// Rows of each chunk of set `set` over all that is recorded, [layers][experts]; of each rank for an iteration, the
// mean, [layers][devices][experts].
void hec_recorded_totals(const struct hec_setup *setup, int set, int64_t *rows);
void hec_recorded_mean(const struct hec_setup *setup, int set, int32_t *forecast);

// Where the layers of set `set` begin in its loads.
int64_t hec_recorded_layer(const struct hec_setup *setup, int set);

#endif
