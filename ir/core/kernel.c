// Kernels by name, and calls of them taken apart.
#include "ir/core/kernel.h"

#include <assert.h>
#include <string.h>

#include "ir/accessors.h"
#include "ir/core/signature.h"

static const struct hec_kernel kernels[] = {
#define HEC_KERNEL(name, operation, choose, types, values, sizes, arguments)                       \
    {#name, HEC_OP_##operation, HEC_KERNEL_##types, values, sizes, arguments},
#include "ir/kernels.def"
#undef HEC_KERNEL
};

const struct hec_kernel *hec_kernel_find(MlirStringRef name) {
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
        if (mlirStringRefEqual(HEC_STR(kernels[i].name), name)) return &kernels[i];
    }
    return NULL;
}

const struct hec_kernel *hec_kernel_of(MlirOperation op) {
    return hec_op_is(op, HEC_OP_call) ? hec_kernel_find(hec_call_kernel(op)) : NULL;
}

bool hec_kernel_takes_epilogue(const struct hec_kernel *kernel) {
    return strstr(kernel->arguments, "epilogue") != NULL;
}

enum hec_op hec_op_computes(MlirOperation op) {
    const struct hec_kernel *kernel = hec_kernel_of(op);
    return kernel ? kernel->computes : hec_op_of(op);
}

int hec_fused_runs(int inputs, const MlirValue *input, int32_t length[HEC_FUSED_RUNS]) {
    int runs = 0;
    for (int i = 0; i < HEC_FUSED_RUNS; i++) length[i] = 0;
    for (int i = 0; i < inputs; i++) {
        const bool same =
            i > 0 && mlirTypeEqual(mlirValueGetType(input[i]), mlirValueGetType(input[i - 1]));
        if (!same) runs++;
        if (runs <= HEC_FUSED_RUNS) length[runs - 1]++;
    }
    return runs;
}

// ---- groups of operands and results: operands of the operation, onto, runs of inputs; results, outputs

enum { ONTO = HEC_CALL_OPERANDS, INPUTS, OPERAND_GROUPS = INPUTS + HEC_FUSED_RUNS };
enum { OUTPUTS = HEC_CALL_RESULTS, RESULT_GROUPS };

MlirValue hec_optional_operand(MlirOperation op, int index) {
    const MlirAttribute list = mlirOperationGetAttributeByName(op, HEC_STR(HEC_OPERAND_SEGMENTS));
    int at = index;
    if (!mlirAttributeIsNull(list) && mlirAttributeIsADenseI32Array(list)) {
        if (index >= mlirDenseArrayGetNumElements(list) ||
            mlirDenseI32ArrayGetElement(list, index) == 0)
            return (MlirValue){0};
        at = 0;
        for (int i = 0; i < index; i++) at += mlirDenseI32ArrayGetElement(list, i);
    }
    if (at >= mlirOperationGetNumOperands(op)) return (MlirValue){0};
    return hec_operand(op, at);
}

// How many operands or results groups from .. to-1 have; 0 where the list is another.
static int count_of(MlirOperation op, const char *key, int groups, int from, int to) {
    const MlirAttribute list = mlirOperationGetAttributeByName(op, HEC_STR(key));
    if (mlirAttributeIsNull(list) || !mlirAttributeIsADenseI32Array(list) ||
        mlirDenseArrayGetNumElements(list) != groups)
        return 0;
    int count = 0;
    for (int i = from; i < to; i++) count += mlirDenseI32ArrayGetElement(list, i);
    return count;
}

static MlirBlock block_of(MlirOperation op) {
    return mlirRegionGetFirstBlock(mlirOperationGetRegion(op, 0));
}

struct hec_call hec_call_of(MlirOperation op) {
    static const char operands[] = HEC_OPERAND_SEGMENTS, results[] = HEC_RESULT_SEGMENTS;
    if (!hec_op_is(op, HEC_OP_call))
        return (struct hec_call){.operands = (int)mlirOperationGetNumOperands(op),
                                 .results = (int)mlirOperationGetNumResults(op)};
    struct hec_call call = {
        .operands = count_of(op, operands, OPERAND_GROUPS, 0, ONTO),
        .results = count_of(op, results, RESULT_GROUPS, 0, OUTPUTS),
        .inputs = count_of(op, operands, OPERAND_GROUPS, INPUTS, OPERAND_GROUPS),
        .outputs = count_of(op, results, RESULT_GROUPS, OUTPUTS, RESULT_GROUPS),
        .block = block_of(op),
    };
    call.first_input = call.operands;
    if (count_of(op, operands, OPERAND_GROUPS, ONTO, INPUTS) > 0)
        call.onto = hec_operand(op, call.first_input++);
    return call;
}

// ---- by name

// Where `name` stands in `words`, with what follows it by "name+1"; -1: it does not.
static int index_in(const char *words, const char *name) {
    const char *plus = strchr(name, '+');
    const size_t length = plus ? (size_t)(plus - name) : strlen(name);
    struct hec_word word;
    for (int i = 0; (words = hec_next_word(words, &word)); i++) {
        if (strlen(word.name) == length && memcmp(word.name, name, length) == 0)
            return i + (plus ? plus[1] - '0' : 0);
    }
    return -1;
}

bool hec_call_value(MlirOperation op, const char *name, MlirValue *value, int *result) {
    const struct hec_call call = hec_call_of(op);
    const struct hec_op_row *row = hec_op_row(hec_op_computes(op));
    const int in = index_in(row->operands, name), out = index_in(row->results, name);
    *value = (MlirValue){0};
    *result = out;
    if (in >= 0) *value = hec_optional_operand(op, in);
    if (out >= 0 && out < call.results) *value = hec_result(op, out);
    return in >= 0 || out >= 0;
}

// `word` begins with the name of an operand or a result, which may not be there.
static void see_weights(struct hec_weights *weights, MlirOperation op, const char *word) {
    char name[16] = {0};
    memcpy(name, word, strcspn(word, ",)"));
    const struct hec_op_row *row = hec_op_row(hec_op_computes(op));
    const int operand = index_in(row->operands, name), result = index_in(row->results, name);
    if (operand >= 0) weights->operand = operand;
    if (result >= 0 && result < hec_call_of(op).results) weights->result = result;
}

struct hec_weights hec_call_weights(MlirOperation op) {
    static const char *const words[] = {"layout(", "panels("};
    struct hec_weights weights = {-1, -1, false};
    const struct hec_kernel *kernel = hec_kernel_of(op);
    for (int i = 0; kernel && i < 2; i++) {
        const char *word = strstr(kernel->arguments, words[i]);
        if (!word) continue;
        word += strlen(words[i]);
        do see_weights(&weights, op, word);
        while (*(word += strcspn(word, ",)")) == ',' && word++);
        weights.panels = i == 1;
    }
    return weights;
}

bool hec_is_panels(MlirStringRef layout) {
    return mlirStringRefEqual(layout, HEC_STR("panels"));
}

// ---- building

// The region of `epilogue` with the GEMM's block as the first argument; gives the other inputs.
static int take_epilogue(MlirOperation epilogue, MlirValue product, MlirRegion region,
                         MlirValue *input) {
    if (mlirOperationIsNull(epilogue)) return 0;
    const int all = (int)mlirOperationGetNumOperands(epilogue);
    int inputs = 0;
    for (int i = 0; i < all; i++) input[i] = hec_operand(epilogue, i);
    mlirRegionTakeBody(region, mlirOperationGetRegion(epilogue, 0));
    const MlirBlock body = mlirRegionGetFirstBlock(region);
    const MlirValue own =
        mlirBlockInsertArgument(body, 0, mlirValueGetType(product), mlirValueGetLocation(product));
    for (int i = 0; i < all; i++) {
        if (!mlirValueEqual(input[i], product)) {
            input[inputs++] = input[i];
            continue;
        }
        mlirValueReplaceAllUsesOfWith(mlirBlockGetArgument(body, 1 + inputs), own);
        mlirBlockEraseArgument(body, (unsigned)(1 + inputs));
    }
    return inputs;
}

static MlirNamedAttribute groups_of(MlirContext c, const char *key, int count,
                                    const int32_t *group) {
    return hec_attr(c, key, mlirDenseI32ArrayGet(c, count, group));
}

MlirNamedAttribute hec_attr_operands(MlirContext c, int words, const int32_t *has) {
    return groups_of(c, HEC_OPERAND_SEGMENTS, words, has);
}

MlirOperation hec_build_kernel_call(const struct hec_kernel *kernel, MlirOperation op,
                                    MlirValue onto, MlirOperation epilogue, int more,
                                    const MlirNamedAttribute *attribute) {
    const MlirContext c = mlirOperationGetContext(op);
    struct hec_builder b = hec_builder_before(op);
    MlirOperationState state = mlirOperationStateGet(HEC_STR("hk.call"), b.at);
    int32_t in[OPERAND_GROUPS] = {0}, out[RESULT_GROUPS] = {0};

    const int operands = (int)mlirOperationGetNumOperands(op);
    const int results = (int)mlirOperationGetNumResults(op);
    assert(operands <= HEC_CALL_OPERANDS && results <= HEC_CALL_RESULTS);
    for (int i = 0; i < operands; i++) {
        const MlirValue operand = hec_operand(op, i);
        mlirOperationStateAddOperands(&state, 1, &operand);
    }
    for (int i = 0; i < HEC_CALL_OPERANDS; i++)
        in[i] = !mlirValueIsNull(hec_optional_operand(op, i));
    if (!mlirValueIsNull(onto)) {
        mlirOperationStateAddOperands(&state, 1, &onto);
        in[ONTO] = 1;
    }
    for (int i = 0; i < results; i++) {
        const MlirType type = mlirValueGetType(hec_result(op, i));
        mlirOperationStateAddResults(&state, 1, &type);
        out[i] = 1;
    }
    MlirRegion region = mlirRegionCreate();
    MlirValue input[HEC_FUSED_VALUES];
    const int inputs = take_epilogue(epilogue, hec_result(op, 0), region, input);
    hec_fused_runs(inputs, input, in + INPUTS);
    mlirOperationStateAddOperands(&state, inputs, input);
    for (int i = 0; epilogue.ptr && i < mlirOperationGetNumResults(epilogue); i++) {
        const MlirType type = mlirValueGetType(hec_result(epilogue, i));
        mlirOperationStateAddResults(&state, 1, &type);
        out[OUTPUTS]++;
    }

    for (intptr_t i = 0; i < mlirOperationGetNumAttributes(op); i++) {
        const MlirNamedAttribute own = mlirOperationGetAttribute(op, i);
        const MlirStringRef name = mlirIdentifierStr(own.name);
        if (!mlirStringRefEqual(name, HEC_STR(HEC_OPERAND_SEGMENTS)))
            mlirOperationStateAddAttributes(&state, 1, &own);
    }
    mlirOperationStateAddAttributes(&state, more, attribute);
    const MlirNamedAttribute fixed[] = {hec_attr_string(c, "kernel", kernel->name),
                                        groups_of(c, HEC_OPERAND_SEGMENTS, OPERAND_GROUPS, in),
                                        groups_of(c, HEC_RESULT_SEGMENTS, RESULT_GROUPS, out)};
    mlirOperationStateAddAttributes(&state, 3, fixed);
    mlirOperationStateAddOwnedRegions(&state, 1, &region);
    const MlirOperation call = mlirOperationCreate(&state);
    assert(!mlirOperationIsNull(call));
    hec_builder_insert(&b, call);
    return call;
}
