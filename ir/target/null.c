// Target null, of tests/targets: it computes nothing. Its numbers are unlike those of the others, so that tests
// see who has numbers of his own.
#include "ir/target/records.h"

const struct hec_target hec_target_null = {
    .name = "null",
    .panel_columns = 0,
    .align_bytes = 128,
    .epilogues = true,
};
