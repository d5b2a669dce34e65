// The waves of @backward, in descending order.
#ifndef HECATE_PASSES_DISTRIBUTE_BACKWARD_H
#define HECATE_PASSES_DISTRIBUTE_BACKWARD_H

#include "passes/distribute/routed.h"

// Puts them in place of the region and its ends; waves whose slots a later one has overwritten are sent and
// recomputed. @forward is distributed already.
void hec_distribute_backward(struct hec_routed *x);

#endif
