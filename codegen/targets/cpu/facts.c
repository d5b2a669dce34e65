// Target cpu: C with OpenMP.
#include "ir/target/target.h"

// As kernels/packed/packed.h has them.
static const struct hec_packing packings[] = {
    {"mxfp4", 32, 64 + 32 * 64 / 2}, {"fp8", 32, 64 + 32 * 64}, {0}};

const struct hec_target hec_target_cpu = {
    .name = "cpu",
    .panel_columns = 64, // HK_PANEL of kernels/types.h.
    .align_bytes = 64,   // A cache line, and the widest vector.
    .epilogues = true,
    .packings = packings,
};
