// The kernel for an operation.
#include "ir/kernels/choose.h"

#include <assert.h>
#include <string.h>

#include "ir/ops/rule.h"

// By kernel; those of one operation have the same function.
static const struct row {
    enum hec_op computes;
    hec_choose *choose;
} rows[] = {
#define HEC_KERNEL(name, operation, choose, types, values, sizes, arguments)                       \
    {HEC_OP_##operation, hec_choose_##choose},
#include "ir/kernels.def"
#undef HEC_KERNEL
};

void hec_choice_kernel(struct hec_choice *choice, const char *name) {
    choice->kernel = hec_kernel_find(HEC_STR(name));
    assert(choice->kernel); // kernels.def
}

void hec_choice_own_kernel(struct hec_choice *choice, MlirOperation op) {
    hec_choice_kernel(choice, strchr(hec_op_row(hec_op_of(op))->name, '.') + 1);
}

void hec_choice_size(struct hec_choice *choice, const char *name, const struct hec_tensor *t,
                     int from, int to) {
    assert(choice->sizes < HEC_SIZES_MAX);
    choice->size[choice->sizes++] = (struct hec_size){name, hec_slice(t, from, to)};
}

struct hec_choice hec_choose_kernel(MlirOperation op) {
    struct hec_choice choice = {0};
    const enum hec_op computes = hec_op_of(op);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (rows[i].computes != computes) continue;
        rows[i].choose(op, &choice);
        break;
    }
    return choice;
}
