// Operations that are the same in every target.
#include "codegen/host/calls.h"

#include "codegen/host/experts.h"
#include "codegen/host/rows.h"

// Without `default`: the compiler names an operation that printed.def lacks.
#pragma GCC diagnostic error "-Wswitch"
hec_emit_op *hec_host_op(enum hec_op op) {
    switch (op) {
#define HEC_BY_HOST(id, function)                                                                  \
    case HEC_OP_##id:                                                                              \
        return hec_emit_##function;
#define NOT_HERE(id)                                                                               \
    case HEC_OP_##id:                                                                              \
        return NULL;
#define HEC_BY_TARGET(id) NOT_HERE(id)
#define HEC_BY_LOOP(id) NOT_HERE(id)
#define HEC_BY_KERNEL(id) NOT_HERE(id)
#define HEC_BY_NOBODY(id) NOT_HERE(id)
#include "codegen/host/printed.def"
#define HEC_OP(id, dialect, operands, results, attributes)
#define HEC_SCALAR(id, operands, results) NOT_HERE(id)
#define HEC_NORM(id) NOT_HERE(id) NOT_HERE(id##_grad)
#include "ir/ops.def"
#undef HEC_OP
    case HEC_OP_FUNC:
    case HEC_OP_FUNC_CALL:
    case HEC_OP_FOR:
    case HEC_OP_YIELD:
    case HEC_OP_MODULE:
    case HEC_OP_OTHER:
        return NULL;
    case HEC_OP_CONSTANT:
    case HEC_OP_ADDI:
    case HEC_OP_SUBI:
    case HEC_OP_SCF_YIELD:
    case HEC_OP_RETURN:
        return hec_emit_nothing;
    }
    return NULL;
}

void hec_emit_nothing(struct hec_emitter *e, MlirOperation op) {
    (void)e, (void)op;
}
