// Members of a route: the operations on its rows.
#ifndef HECATE_PASSES_DISTRIBUTE_FIND_H
#define HECATE_PASSES_DISTRIBUTE_FIND_H

#include "passes/distribute/routed.h"

// Finds limit, permute, gate, combine and the region of @forward; from, to, to_gate and theirs in
// @backward. Fails where the route is not in the loop of its set's layers.
void hec_find_rows(struct hec_routed *x);

// Checks that waves can take the place of these: each is there, in one block, and moves rows by this route. When the
// limit is gone.
void hec_check_rows_forward(struct hec_routed *x);
void hec_check_rows_backward(struct hec_routed *x);

#endif
