// The records, by name.
#ifndef HECATE_IR_TARGET_RECORDS_H
#define HECATE_IR_TARGET_RECORDS_H

#include "ir/target/target.h"

extern const struct hec_target hec_target_cpu;
extern const struct hec_target hec_target_cuda;
extern const struct hec_target hec_target_null;

#endif
