// The traits of all operations, from ops.def.
#include "ir/context.h"

#define HEC_OP(id, dialect, operands, results, attributes)                                         \
    extern const struct hec_traits hec_traits_##id;
#include "ir/ops.def"
#undef HEC_OP

static const struct hec_traits traits_upstream = {0};
static const struct hec_traits traits_arith = {.pure = true};

const struct hec_traits *const hec_all_traits[HEC_OP_OTHER + 1] = {
#define HEC_OP(id, dialect, operands, results, attributes) [HEC_OP_##id] = &hec_traits_##id,
#include "ir/ops.def"
#undef HEC_OP
    [HEC_OP_FUNC] = &traits_upstream,      [HEC_OP_RETURN] = &traits_upstream,
    [HEC_OP_FUNC_CALL] = &traits_upstream, [HEC_OP_FOR] = &traits_upstream,
    [HEC_OP_SCF_YIELD] = &traits_upstream, [HEC_OP_YIELD] = &traits_upstream,
    [HEC_OP_CONSTANT] = &traits_arith,     [HEC_OP_ADDI] = &traits_arith,
    [HEC_OP_SUBI] = &traits_arith,         [HEC_OP_MODULE] = &traits_upstream,
    [HEC_OP_OTHER] = &traits_upstream,
};
