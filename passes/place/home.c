// Homes as text.
#include "passes/place/home.h"

#include "lang/base/arena.h"

#include <stdlib.h>
#include <string.h>

const char *const hec_argument_homes[HEC_ARGUMENTS] = {"ids", "targets", "scale", "share"};

static const char *const words[] = {
    [HEC_HOME_SLOT] = "slot", [HEC_HOME_PARAM] = "param", [HEC_HOME_GRAD] = "grad"};

void hec_home_write(const struct hec_home *home, FILE *out) {
    switch (home->kind) {
    case HEC_HOME_NONE:
        fputs("none", out);
        return;
    case HEC_HOME_ARENA:
        fprintf(out, "arena+%" PRId64, home->at);
        return;
    case HEC_HOME_ARGUMENT:
        fprintf(out, "%.*s", (int)home->symbol.length, home->symbol.data);
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
    hec_home_write(home, out);
    fclose(out);
    const MlirAttribute attribute = mlirStringAttrGet(context, mlirStringRefCreate(text, bytes));
    free(text);
    return attribute;
}

// A decimal number that ends with `end`; -1 when it is none.
static int64_t read_number(const char *at, const char *stop) {
    int64_t value = 0;
    if (at == stop || stop - at > 18) return -1;
    for (; at < stop; at++) {
        if (*at < '0' || *at > '9') return -1;
        value = 10 * value + (*at - '0');
    }
    return value;
}

static bool read_row(const char *at, const char *end, struct hec_home *home) {
    if (at == end) return true;
    if (*at != '[' || end[-1] != ']') return false;
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

bool hec_home_read(MlirStringRef text, struct hec_home *home) {
    const char *end = text.data + text.length;
    *home = (struct hec_home){0};
    if (mlirStringRefEqual(text, HEC_STR("none"))) return true;
    for (int i = 0; i < HEC_ARGUMENTS; i++) {
        if (!mlirStringRefEqual(text, HEC_STR(hec_argument_homes[i]))) continue;
        *home = (struct hec_home){.kind = HEC_HOME_ARGUMENT, .symbol = text};
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

bool hec_home_of(MlirOperation op, const char *key, int index, struct hec_home *home) {
    const MlirAttribute homes = mlirOperationGetAttributeByName(op, HEC_STR(key));
    if (mlirAttributeIsNull(homes) || !mlirAttributeIsAArray(homes) ||
        index >= mlirArrayAttrGetNumElements(homes))
        return false;
    const MlirAttribute text = mlirArrayAttrGetElement(homes, index);
    return mlirAttributeIsAString(text) && hec_home_read(mlirStringAttrGetValue(text), home);
}
