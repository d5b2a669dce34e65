// The table that a context hands over to the core (core/op.h).
#ifndef HECATE_IR_CONTEXT_H
#define HECATE_IR_CONTEXT_H

#include "ir/core/op.h"

// The traits of each operation (traits.c).
extern const struct hec_traits *const hec_all_traits[HEC_OP_OTHER + 1];

#endif
