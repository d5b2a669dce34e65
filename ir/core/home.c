// Homes as text.
#include "ir/core/home.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/accessors.h"
#include "lang/base/arena.h"

const char *const hec_argument_homes[HEC_ARGUMENTS] = {"ids", "targets", "scale",
                                                       "auxiliary_scale"};

static const char *const words[] = {
    [HEC_HOME_SLOT] = "slot", [HEC_HOME_PARAM] = "param", [HEC_HOME_GRAD] = "grad"};

static void write_home(const struct hec_home *home, FILE *out) {
    switch (home->kind) {
    case HEC_HOME_NONE:
        fputs("none", out);
        return;
    case HEC_HOME_ARENA:
        fprintf(out, "arena+%" PRId64, home->at);
        return;
    case HEC_HOME_ARGUMENT:
        fputs(hec_argument_homes[home->at], out);
        return;
    default:
        break;
    }
    fprintf(out, "%s @%.*s", words[home->kind], (int)home->symbol.length, home->symbol.data);
    switch (home->row) {
    case HEC_ROW_ONLY:
        break;
    case HEC_ROW_LAYER:
        fputs("[i]", out);
        break;
    case HEC_ROW_NEXT:
        fputs("[i+1]", out);
        break;
    case HEC_ROW_FIXED:
        fprintf(out, "[%" PRId64 "]", home->at);
        break;
    }
}

MlirAttribute hec_home_attribute(MlirContext context, const struct hec_home *home) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = hec_checked(open_memstream(&text, &bytes));
    write_home(home, out);
    fclose(out);
    const MlirAttribute attribute = mlirStringAttrGet(context, mlirStringRefCreate(text, bytes));
    free(text);
    return attribute;
}

// The decimal number from `at` to `stop`; -1 when it is none.
static int64_t read_number(const char *at, const char *stop) {
    int64_t value = 0;
    if (at == stop || stop - at > 18 || (*at == '0' && stop - at > 1)) return -1;
    for (; at < stop; at++) {
        if (*at < '0' || *at > '9') return -1;
        value = 10 * value + (*at - '0');
    }
    return value;
}

static bool read_row(const char *at, const char *end, struct hec_home *home) {
    if (at == end) return true;
    if (end - at < 3 || end[-1] != ']') return false;
    at++, end--;
    const size_t length = (size_t)(end - at);
    if (length == 1 && *at == 'i') {
        home->row = HEC_ROW_LAYER;
    } else if (length == 3 && memcmp(at, "i+1", 3) == 0) {
        home->row = HEC_ROW_NEXT;
    } else {
        home->row = HEC_ROW_FIXED;
        home->at = read_number(at, end);
    }
    return home->at >= 0;
}

static bool read_home(MlirStringRef text, struct hec_home *home) {
    const char *end = text.data + text.length;
    *home = (struct hec_home){0};
    if (mlirStringRefEqual(text, HEC_STR("none"))) return true;
    for (int i = 0; i < HEC_ARGUMENTS; i++) {
        if (!mlirStringRefEqual(text, HEC_STR(hec_argument_homes[i]))) continue;
        *home = (struct hec_home){.kind = HEC_HOME_ARGUMENT, .at = i};
        return true;
    }
    if (text.length > 6 && memcmp(text.data, "arena+", 6) == 0) {
        home->kind = HEC_HOME_ARENA;
        home->at = read_number(text.data + 6, end);
        return home->at >= 0;
    }
    for (int kind = HEC_HOME_SLOT; kind <= HEC_HOME_GRAD; kind++) {
        const size_t length = strlen(words[kind]);
        if (text.length < length + 3 || memcmp(text.data, words[kind], length) != 0 ||
            memcmp(text.data + length, " @", 2) != 0)
            continue;
        const char *symbol = text.data + length + 2;
        const char *row = memchr(symbol, '[', (size_t)(end - symbol));
        if (!row) row = end;
        home->kind = kind;
        home->symbol = mlirStringRefCreate(symbol, (size_t)(row - symbol));
        return read_row(row, end, home);
    }
    return false;
}

// ---- homes of values

// The list that holds the home of `value`, and its position there.
static MlirAttribute list_of(MlirValue value, const char *key, int *index) {
    if (mlirValueIsAOpResult(value)) {
        *index = (int)mlirOpResultGetResultNumber(value);
        return mlirOperationGetAttributeByName(hec_defining(value), HEC_STR(key));
    }
    const MlirOperation parent = mlirBlockGetParentOperation(mlirBlockArgumentGetOwner(value));
    *index = (int)mlirBlockArgumentGetArgNumber(value);
    if (hec_op_is(parent, HEC_OP_FOR)) (*index)--; // The loop's index has no home.
    return mlirOperationGetAttributeByName(parent, HEC_STR("argument_home"));
}

static MlirAttribute element_of(MlirAttribute list, int index) {
    if (mlirAttributeIsNull(list) || !mlirAttributeIsAArray(list) || index < 0 ||
        index >= mlirArrayAttrGetNumElements(list))
        return (MlirAttribute){0};
    return mlirArrayAttrGetElement(list, index);
}

bool hec_home_of(MlirValue value, struct hec_home *home) {
    int index;
    const MlirAttribute list = list_of(value, "home", &index), text = element_of(list, index);
    *home = (struct hec_home){0};
    return !mlirAttributeIsNull(text) && mlirAttributeIsAString(text) &&
           read_home(mlirStringAttrGetValue(text), home);
}

bool hec_home_adds(MlirValue value) {
    if (!mlirValueIsAOpResult(value)) return false;
    int index;
    const MlirAttribute list = list_of(value, "adds", &index), adds = element_of(list, index);
    return !mlirAttributeIsNull(adds) && mlirAttributeIsABool(adds) && mlirBoolAttrGetValue(adds);
}

bool hec_home_equal(const struct hec_home *a, const struct hec_home *b) {
    return a->kind == b->kind && a->row == b->row && a->at == b->at &&
           mlirStringRefEqual(a->symbol, b->symbol);
}

// ---- verification

static bool refuse(MlirOperation op, const char *why, MlirStringRef text) {
    return hec_ir_error(op, "has a home %s: \"%.*s\"", why, (int)text.length, text.data);
}

static bool check_symbol(MlirOperation op, const struct hec_home *home, MlirStringRef text) {
    const MlirOperation symbol = hec_find_symbol(hec_module_of(op), home->symbol);
    const bool slot = home->kind == HEC_HOME_SLOT;
    if (!hec_op_is(symbol, slot ? HEC_OP_slot : HEC_OP_param))
        return refuse(op,
                      slot ? "in a slot that does not exist" : "in a parameter that does not exist",
                      text);
    if ((home->row == HEC_ROW_ONLY) != (hec_any_layers(symbol) == 0))
        return refuse(
            op, home->row == HEC_ROW_ONLY ? "without its layer" : "in a layer of what has none",
            text);
    if (home->row == HEC_ROW_NEXT && !slot)
        return refuse(op, "in the next layer's parameter", text);
    return true;
}

static bool check_home(MlirOperation op, MlirValue value, MlirAttribute attribute) {
    if (!mlirAttributeIsAString(attribute)) return hec_ir_error(op, "has a home that is no string");
    const MlirStringRef text = mlirStringAttrGetValue(attribute);
    struct hec_home home;
    if (!read_home(text, &home)) return refuse(op, "that cannot be read", text);
    const bool tensor = mlirTypeIsARankedTensor(mlirValueGetType(value));
    if (tensor != (home.kind != HEC_HOME_NONE))
        return refuse(op, tensor ? "that holds no tensor" : "for what is no tensor", text);
    if (home.kind == HEC_HOME_ARGUMENT) {
        if (hec_op_is(op, HEC_OP_FUNC) && mlirBlockArgumentGetArgNumber(value) == home.at)
            return true;
        return refuse(op, "that is another argument's", text);
    }
    if (hec_op_is(op, HEC_OP_FUNC)) return refuse(op, "that is no argument's", text);
    return !home.symbol.length || check_symbol(op, &home, text);
}

// The list `key` of `op`, which must have `count` elements. Null, and sound, when it has none.
static bool find_list(MlirOperation op, const char *key, intptr_t count, MlirAttribute *list) {
    *list = mlirOperationGetAttributeByName(op, HEC_STR(key));
    if (mlirAttributeIsNull(*list)) return true;
    if (mlirAttributeIsAArray(*list) && mlirArrayAttrGetNumElements(*list) == count) return true;
    return hec_ir_error(op, "attribute '%s' must have %d elements", key, (int)count);
}

static bool check_arguments(MlirOperation op) {
    const MlirBlock body = hec_func_body(op);
    const int first = hec_op_is(op, HEC_OP_FOR) ? 1 : 0;
    if (mlirBlockIsNull(body)) return true; // A declaration.
    const intptr_t count = mlirBlockGetNumArguments(body) - first;
    MlirAttribute homes;
    if (!find_list(op, "argument_home", count, &homes)) return false;
    for (intptr_t i = 0; i < count && !mlirAttributeIsNull(homes); i++) {
        if (!check_home(op, mlirBlockGetArgument(body, first + i),
                        mlirArrayAttrGetElement(homes, i)))
            return false;
    }
    return true;
}

bool hec_home_verify(MlirOperation op) {
    const intptr_t results = mlirOperationGetNumResults(op);
    MlirAttribute homes, adds;
    if (!find_list(op, "home", results, &homes) || !find_list(op, "adds", results, &adds))
        return false;
    for (intptr_t i = 0; i < results && !mlirAttributeIsNull(homes); i++) {
        if (!check_home(op, hec_result(op, i), mlirArrayAttrGetElement(homes, i))) return false;
    }
    return !(hec_op_is(op, HEC_OP_FOR) || hec_op_is(op, HEC_OP_FUNC)) || check_arguments(op);
}
