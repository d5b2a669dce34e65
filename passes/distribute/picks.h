// Collective work of all ranks right behind the router.
#ifndef HECATE_PASSES_DISTRIBUTE_PICKS_H
#define HECATE_PASSES_DISTRIBUTE_PICKS_H

#include "passes/distribute/routed.h"

// Drops top-k choices where experts have a capacity, and says where the others go.
void hec_settle_picks(struct hec_routed *x, MlirOperation router);

#endif
