// First owners of experts: consecutive ones, or by recorded loads. Private to this folder.
#ifndef HECATE_PASSES_TIMELINE_FIRST_OWNERS_H
#define HECATE_PASSES_TIMELINE_FIRST_OWNERS_H

#include "passes/timeline/search.h"

// Keeps the owners that the search has as the even ones, which hec_first_owners begins with each time. Where experts of
// a layer do not divide by the devices and owners may be anything, those of all layers are dealt out in turn first.
// Memory is of `arena`.
void hec_even_owners(struct hec_search *search, struct hec_arena *arena);

// Sets the search's owners and writes them to the module, so that candidates count the memory of these. Without
// recorded loads they are the even ones. With them every device gets equally many chunks over all layers, by the loads
// of experts beside the `overlap` most loaded ones of each layer, which replicas will serve. False after a report: the
// planner refuses the loads.
bool hec_first_owners(MlirOperation module, struct hec_search *search, struct hec_arena *arena,
                      int64_t overlap);

#endif
