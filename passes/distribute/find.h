// What belongs to a route: the operations on its rows.
#ifndef HECATE_PASSES_DISTRIBUTE_FIND_H
#define HECATE_PASSES_DISTRIBUTE_FIND_H

#include "passes/distribute/routed.h"

// Finds permute, gate, combine and the region of @forward; then from, to, to_gate and theirs in @backward,
// by the slots that @forward saved them in. Fails where rows are used outside.
void hec_find_rows_forward(struct hec_routed *x);
void hec_find_rows_backward(struct hec_routed *x, MlirOperation backward);

#endif
