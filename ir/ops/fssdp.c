// Movement of experts: keyed by set and layer, asynchronous, without values of their own.
#include "ir/ops/rule.h"

static bool verify(MlirOperation op) {
    const MlirStringRef name = hec_get_string(op, "set");
    if (hec_op_is(hec_find_symbol(hec_module_of(op), name), HEC_OP_set)) return true;
    hec_ir_error(op, "there is no moe.set @%.*s", (int)name.length, name.data);
    return false;
}

const struct hec_traits hec_traits_plan = {.verify = verify};
const struct hec_traits hec_traits_materialize = {.verify = verify};
const struct hec_traits hec_traits_await = {.verify = verify};
const struct hec_traits hec_traits_reduce = {.verify = verify};
const struct hec_traits hec_traits_release = {.verify = verify};
