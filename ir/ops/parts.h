// A tensor and parts of it along one dimension, for moe.slice, moe.slice_grad and moe.concat.
#ifndef HECATE_IR_OPS_PARTS_H
#define HECATE_IR_OPS_PARTS_H

#include "ir/core/op.h"

enum { HEC_PARTS_MAX = 2 };

struct hec_parts {
    MlirValue whole;
    int at; // The dimension of the whole that each part has another one in place of.
    int count;
    struct hec_part {
        MlirValue value;
        int64_t begin;           // Its first element along the dimension of the whole.
        struct hec_tensor space; // The whole with the part's dimension in place of its own.
    } part[HEC_PARTS_MAX];
};

// Takes `op`, one of the three, apart, or reports a fault at it and returns false.
bool hec_parts_of(MlirOperation op, struct hec_parts *parts);

#endif
