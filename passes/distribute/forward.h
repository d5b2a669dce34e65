// The waves of @forward.
#ifndef HECATE_PASSES_DISTRIBUTE_FORWARD_H
#define HECATE_PASSES_DISTRIBUTE_FORWARD_H

#include "passes/distribute/routed.h"

// Puts them in place of the region and its ends.
void hec_distribute_forward(struct hec_routed *x);

#endif
