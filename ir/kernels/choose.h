// Shared by the families of kernels: a function for each operation that chooses its kernel.
#ifndef HECATE_IR_KERNELS_CHOOSE_H
#define HECATE_IR_KERNELS_CHOOSE_H

#include "ir/core/kernel.h"

typedef void hec_choose(MlirOperation op, struct hec_choice *choice);

// Those that kernels.def names.
#define HEC_KERNEL(name, operation, choose, types, values, sizes, arguments)                       \
    hec_choose hec_choose_##choose;
#include "ir/kernels.def"
#undef HEC_KERNEL

// The kernel of that name; where there is none, the choice stays empty.
void hec_choice_kernel(struct hec_choice *choice, const char *name);
// The kernel called as the operation.
void hec_choice_own_kernel(struct hec_choice *choice, MlirOperation op);
// Adds a size: dimensions from .. to-1 of `t`.
void hec_choice_size(struct hec_choice *choice, const char *name, const struct hec_tensor *t,
                     int from, int to);

#endif
