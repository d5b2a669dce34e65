// Target cpu: C with OpenMP.
#include "ir/target/target.h"

const struct hec_target hec_target_cpu = {
    .name = "cpu",
    .panel_columns = 64, // HK_PANEL of kernels/types.h.
    .align_bytes = 64,   // A cache line, and the widest vector.
    .epilogues = true,
};
