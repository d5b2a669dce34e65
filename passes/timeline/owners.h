// Changes of owners, and of placements that last, between steps, and the transfers that they cause.
#ifndef HECATE_PASSES_TIMELINE_OWNERS_H
#define HECATE_PASSES_TIMELINE_OWNERS_H

#include "passes/timeline/traffic.h"

// Behind hec_mover_begin, with mover->owner: from now on placements of periodic policies stay until they are changed.
// They are made by the loads up to time `at` of the file, and cost nothing. False: the planner refuses.
bool hec_owners_begin(struct hec_mover *mover, int64_t at);

// Places experts anew by the loads up to time `at`, or finds new owners with policies of ours; others leave them alone.
// `chunks`: how many move with their states, all layers together. False: the planner refuses.
bool hec_owners_change(struct hec_mover *mover, int64_t at, double *chunks);

// The transfer of the chunks that the last change moves; -1: none.
int32_t hec_owners_transfer(struct hec_mover *mover);

// The time of the file that an iteration has: where the file ends, they go on where the forecast is full.
int64_t hec_time_of(const struct hec_mover *mover, int64_t iteration);

#endif
