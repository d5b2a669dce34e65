// The op table, from ops.def, and the way from an operation to its row.
#include "ir/core/op.h"

#include <pthread.h>
#include <string.h>

#include "ir/core/kernel.h"

static const struct hec_op_row rows[HEC_OP_OTHER + 1] = {
#define HEC_OP(id, dialect, operands, results, attributes)                                         \
    [HEC_OP_##id] = {#dialect "." #id, operands, results, attributes},
#include "ir/ops.def"
#undef HEC_OP
    [HEC_OP_FUNC] =
        {"func.func", "", "",
         "sym_name:string function_type:type sym_visibility:string? argument_home:strings? "
         "arg_attrs:any? res_attrs:any?"},
    [HEC_OP_RETURN] = {"func.return", "", "", ""},
    [HEC_OP_FUNC_CALL] = {"func.call", "", "", "callee:symbol"},
    [HEC_OP_FOR] = {"scf.for", "", "", "home:strings? argument_home:strings?"},
    [HEC_OP_SCF_YIELD] = {"scf.yield", "", "", ""},
    [HEC_OP_YIELD] = {"vector.yield", "", "", ""},
    [HEC_OP_CONSTANT] = {"arith.constant", "", "", "value:any"},
    [HEC_OP_ADDI] = {"arith.addi", "", "", "overflowFlags:any?"},
    [HEC_OP_SUBI] = {"arith.subi", "", "", "overflowFlags:any?"},
    [HEC_OP_MODULE] = {"builtin.module", "", "", ""},
    [HEC_OP_OTHER] = {"?", "", "", ""},
};

// Names to ops, open addressing; filled once, read only afterwards.
enum { BUCKETS = 512 };
static short bucket[BUCKETS];
static pthread_once_t bucket_once = PTHREAD_ONCE_INIT;

static unsigned hash(const char *name, size_t length) { // FNV-1a
    uint32_t h = 2166136261u;
    for (size_t i = 0; i < length; i++) h = (h ^ (unsigned char)name[i]) * 16777619u;
    return h % BUCKETS;
}

static void fill_buckets(void) {
    for (int i = 0; i < BUCKETS; i++) bucket[i] = HEC_OP_OTHER;
    for (int op = 0; op < HEC_OP_OTHER; op++) {
        unsigned at = hash(rows[op].name, strlen(rows[op].name));
        while (bucket[at] != HEC_OP_OTHER) at = (at + 1) % BUCKETS;
        bucket[at] = (short)op;
    }
}

const struct hec_op_row *hec_op_row(enum hec_op op) {
    return &rows[op];
}

enum hec_op hec_op_of(MlirOperation op) {
    pthread_once(&bucket_once, fill_buckets);
    const MlirStringRef name = mlirIdentifierStr(mlirOperationGetName(op));
    for (unsigned at = hash(name.data, name.length); bucket[at] != HEC_OP_OTHER;
         at = (at + 1) % BUCKETS) {
        const char *candidate = rows[bucket[at]].name;
        if (strncmp(candidate, name.data, name.length) == 0 && !candidate[name.length]) {
            return (enum hec_op)bucket[at];
        }
    }
    return HEC_OP_OTHER;
}

static const struct hec_traits *const *traits_of; // [HEC_OP_OTHER + 1]

void hec_op_use(const struct hec_traits *const traits[]) {
    __atomic_store_n(&traits_of, traits, __ATOMIC_RELEASE);
}

const struct hec_traits *hec_traits_of(enum hec_op op) {
    return __atomic_load_n(&traits_of, __ATOMIC_ACQUIRE)[op];
}

struct hec_cost hec_op_cost(MlirOperation op) {
    if (hec_op_is(op, HEC_OP_call)) return hec_traits_of(HEC_OP_call)->cost(op);
    const struct hec_traits *traits = hec_op_traits(op);
    if (traits->cost) return traits->cost(op);
    struct hec_cost cost = {0};
    for (int i = 0; i < mlirOperationGetNumOperands(op); i++) {
        cost.bytes += (double)hec_type_bytes(mlirValueGetType(hec_operand(op, i)));
    }
    for (int i = 0; i < mlirOperationGetNumResults(op); i++) {
        cost.bytes += (double)hec_type_bytes(mlirValueGetType(hec_result(op, i)));
    }
    return cost;
}

bool hec_is_of_step(MlirOperation op) {
    return mlirStringRefEqual(hec_get_string(op, "scope"), HEC_STR("step"));
}

MlirValue hec_layer_of(MlirOperation op) {
    MlirValue layer;
    int result;
    hec_call_value(op, "layer", &layer, &result);
    return layer;
}
