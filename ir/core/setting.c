// Settings of a module: hecate.settings, a dictionary of typed attributes.
#include "ir/core/setting.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ir/accessors.h"
#include "lang/scan.h"

// ---- attributes and texts

static bool ends_in_bytes(MlirStringRef text) {
    return text.length && text.data[text.length - 1] == 'B';
}

static MlirAttribute pair_of(MlirContext c, const char *text) {
    double pair[2] = {0};
    char *end;
    pair[0] = strtod(text, &end);
    pair[1] = strtod(end + (*end == ','), NULL);
    return mlirDenseF64ArrayGet(c, 2, pair);
}

MlirAttribute hec_setting_attribute(MlirContext c, const struct hec_setting_row *row,
                                    const char *text) {
    struct hec_number number;
    const bool numeric = hec_number_read(text, &number);
    switch (row ? row->type : HEC_SETTING_TEXT) {
    case HEC_SETTING_COUNT:
        if (!numeric || (row->flags & HEC_SETTING_UNIT && number.measure != HEC_PLAIN)) break;
        return mlirIntegerAttrGet(mlirIntegerTypeGet(c, 64), (int64_t)number.value);
    case HEC_SETTING_REAL:
        if (numeric) return mlirFloatAttrDoubleGet(c, mlirF64TypeGet(c), number.value);
        break;
    case HEC_SETTING_SWITCH:
        if (!strcmp(text, "true") || !strcmp(text, "false"))
            return mlirBoolAttrGet(c, !strcmp(text, "true"));
        break;
    case HEC_SETTING_PAIR:
        return pair_of(c, text);
    case HEC_SETTING_TEXT:
    case HEC_SETTING_PIECES:
    case HEC_SETTING_CHOICE:
    case HEC_SETTING_LABEL:
        break;
    }
    return mlirStringAttrGet(c, HEC_STR(text));
}

static bool is_pair(MlirAttribute value) {
    return mlirAttributeIsADenseF64Array(value) && mlirDenseArrayGetNumElements(value) == 2;
}

const char *hec_setting_print(struct hec_arena *arena, MlirAttribute value) {
    if (mlirAttributeIsABool(value)) return mlirBoolAttrGetValue(value) ? "true" : "false";
    if (mlirAttributeIsAInteger(value))
        return hec_arena_format(arena, "%" PRId64, mlirIntegerAttrGetValueInt(value));
    if (mlirAttributeIsAFloat(value))
        return hec_number_text(arena, mlirFloatAttrGetValueDouble(value));
    if (is_pair(value))
        return hec_arena_format(arena, "%s,%s",
                                hec_number_text(arena, mlirDenseF64ArrayGetElement(value, 0)),
                                hec_number_text(arena, mlirDenseF64ArrayGetElement(value, 1)));
    if (!mlirAttributeIsAString(value)) return "";
    const MlirStringRef text = mlirStringAttrGetValue(value);
    return hec_arena_copy(arena, text.data, text.length);
}

// ---- checking

static const struct hec_setting_row *row_of(MlirStringRef key) {
    for (int i = 0; i < HEC_KEYS; i++) {
        if (mlirStringRefEqual(key, HEC_STR(hec_setting_rows[i].key))) return &hec_setting_rows[i];
    }
    return NULL;
}

// Groups of parameters have a text each, "train.parameters.PATTERN".
static bool is_group(MlirStringRef key) {
    const MlirStringRef of_groups = HEC_STR("train.parameters.");
    return key.length > of_groups.length && !memcmp(key.data, of_groups.data, of_groups.length);
}

static bool begins(MlirStringRef text, const char *with) {
    const size_t length = strlen(with);
    return text.length >= length && !memcmp(text.data, with, length);
}

// A word of the row; behind it there may be others in parentheses.
static bool is_word(const struct hec_setting_row *row, MlirStringRef text) {
    char word[64] = "";
    size_t length = 0;
    while (length < text.length && text.data[length] != '(') length++;
    if (length >= sizeof word) return false;
    memcpy(word, text.data, length);
    if (row->flags & HEC_SETTING_AUTO && !strcmp(word, "auto")) return true;
    return hec_setting_lists(row->values, word);
}

static bool in_range(const struct hec_setting_row *row, double value) {
    return value >= row->smallest && (row->largest == 0 || value <= row->largest);
}

static bool fits_number(const struct hec_setting_row *row, MlirAttribute value) {
    if (row->type == HEC_SETTING_PAIR)
        return is_pair(value) && in_range(row, mlirDenseF64ArrayGetElement(value, 0)) &&
               in_range(row, mlirDenseF64ArrayGetElement(value, 1));
    if (row->type == HEC_SETTING_SWITCH) return mlirAttributeIsABool(value);
    if (row->type == HEC_SETTING_REAL)
        return mlirAttributeIsAFloat(value) && in_range(row, mlirFloatAttrGetValueDouble(value));
    return mlirAttributeIsAInteger(value) && !mlirAttributeIsABool(value) &&
           in_range(row, (double)mlirIntegerAttrGetValueInt(value));
}

static bool fits(const struct hec_setting_row *row, MlirAttribute value) {
    if (!mlirAttributeIsAString(value)) return fits_number(row, value);
    const MlirStringRef text = mlirStringAttrGetValue(value);
    const bool is_text = row->type == HEC_SETTING_TEXT || row->type == HEC_SETTING_LABEL ||
                         row->type == HEC_SETTING_PIECES;
    if (is_text) return !row->values || !text.length || is_word(row, text);
    return is_word(row, text) || (row->flags & HEC_SETTING_UNIT && ends_in_bytes(text));
}

bool hec_settings_check(MlirOperation module) {
    if (!hec_module_has_settings(module)) return true;
    const MlirAttribute all = hec_module_settings(module);
    for (intptr_t i = 0; i < mlirDictionaryAttrGetNumElements(all); i++) {
        const MlirNamedAttribute one = mlirDictionaryAttrGetElement(all, i);
        const MlirStringRef key = mlirIdentifierStr(one.name);
        const struct hec_setting_row *row = row_of(key);
        if (row ? fits(row, one.attribute) : is_group(key) && mlirAttributeIsAString(one.attribute))
            continue;
        return hec_ir_error(module,
                            row ? "setting '%.*s' has a value of another type, or out of its range"
                                : "unknown setting '%.*s'",
                            (int)key.length, key.data);
    }
    return true;
}

// ---- reading

static MlirAttribute value_of(MlirOperation module, enum hec_key key) {
    const struct hec_setting_row *row = &hec_setting_rows[key];
    if (hec_module_has_settings(module)) {
        const MlirAttribute value =
            mlirDictionaryAttrGetElementByName(hec_module_settings(module), HEC_STR(row->key));
        if (!mlirAttributeIsNull(value)) return value;
    }
    return hec_setting_attribute(mlirOperationGetContext(module), row, row->standard);
}

MlirStringRef hec_setting_text(MlirOperation module, enum hec_key key) {
    const MlirAttribute value = value_of(module, key);
    return mlirAttributeIsAString(value) ? mlirStringAttrGetValue(value) : HEC_STR("");
}

bool hec_setting_is(MlirOperation module, enum hec_key key, const char *word) {
    const MlirAttribute value = value_of(module, key);
    if (mlirAttributeIsABool(value)) return mlirBoolAttrGetValue(value) == !strcmp(word, "true");
    return mlirAttributeIsAString(value) &&
           mlirStringRefEqual(mlirStringAttrGetValue(value), HEC_STR(word));
}

bool hec_setting_is_auto(MlirOperation module, enum hec_key key) {
    return begins(hec_setting_text(module, key), "auto");
}

double hec_setting_number(MlirOperation module, enum hec_key key, double otherwise) {
    const MlirAttribute value = value_of(module, key);
    return mlirAttributeIsAFloat(value) ? mlirFloatAttrGetValueDouble(value) : otherwise;
}

int64_t hec_setting_count(MlirOperation module, enum hec_key key, int64_t otherwise) {
    const MlirAttribute value = value_of(module, key);
    return mlirAttributeIsAInteger(value) ? mlirIntegerAttrGetValueInt(value) : otherwise;
}

int64_t hec_setting_bytes(MlirOperation module, enum hec_key key) {
    const MlirStringRef text = hec_setting_text(module, key);
    char copy[64] = "";
    int64_t bytes = 0;
    if (!ends_in_bytes(text) || text.length >= sizeof copy) return 0;
    memcpy(copy, text.data, text.length);
    return hec_count_read(copy, &bytes) ? bytes : 0;
}

int hec_setting_listed(MlirOperation module, enum hec_key key, int64_t *count, int most) {
    const MlirStringRef text = hec_setting_text(module, key);
    char copy[256] = "";
    if (text.length < 5 || text.length >= sizeof copy) return 0;
    memcpy(copy, text.data, text.length);
    int listed = 0;
    char *rest = NULL, *item = strchr(copy, '(');
    for (item = item ? strtok_r(item, "(, )", &rest) : NULL; item && listed < most;
         item = strtok_r(NULL, "(, )", &rest)) {
        if (hec_count_read(item, &count[listed])) listed++;
    }
    return listed;
}
