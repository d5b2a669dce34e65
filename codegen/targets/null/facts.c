// Target null: it computes nothing. Its numbers are unlike those of the others, so that tests see
// code that has numbers of its own.
#include "ir/target/target.h"

const struct hec_target hec_target_null = {
    .name = "null",
    .panel_columns = 0,
    .align_bytes = 128,
    .epilogues = true,
};
