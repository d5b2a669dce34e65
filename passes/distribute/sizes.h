// Numbers that distribute-experts changes: coefficients of losses, and sizes.
#ifndef HECATE_PASSES_DISTRIBUTE_SIZES_H
#define HECATE_PASSES_DISTRIBUTE_SIZES_H

#include "ir/core/op.h"

// A rank's loss is its share of that over all `world` ranks: of a mean one part in `world`; of aux_loss,
// with tokens squared below and the loads of all ranks above, one in its square.
void hec_divide_losses(MlirOperation module, double world);

// Gives `rows` room for the rows of a wave, and tells the sets (wave_rows).
void hec_resize_rows(MlirOperation module);

#endif
