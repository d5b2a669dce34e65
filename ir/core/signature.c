// The signatures of ops.def, word by word, and the kinds of their attributes.
#include "ir/core/signature.h"

#include <string.h>

bool hec_find_word(const char *words, MlirStringRef name, struct hec_word *word) {
    while ((words = hec_next_word(words, word))) {
        if (mlirStringRefEqual(HEC_STR(word->name), name)) return true;
    }
    return false;
}

bool hec_fits_signature(const char *words, int count) {
    struct hec_word word;
    int least = 0, most = 0;
    while ((words = hec_next_word(words, &word))) {
        if (!word.repeat) least++;
        most = word.repeat == '*' ? count : most + 1;
    }
    return least <= count && count <= most;
}

bool hec_has_segments(const char *words) {
    struct hec_word word;
    int may_lack = 0;
    while ((words = hec_next_word(words, &word))) may_lack += word.repeat != 0;
    return may_lack > 1;
}

static bool is_number(MlirAttribute a) {
    if (!mlirAttributeIsAInteger(a)) return false;
    const MlirType type = mlirAttributeGetType(a);
    return !mlirTypeIsAInteger(type) || mlirIntegerTypeGetWidth(type) == 64;
}

static bool is_list(MlirAttribute a, bool (*of)(MlirAttribute)) {
    if (!mlirAttributeIsAArray(a)) return false;
    for (intptr_t i = 0; i < mlirArrayAttrGetNumElements(a); i++) {
        if (!of(mlirArrayAttrGetElement(a, i))) return false;
    }
    return true;
}

static bool is_strings(MlirAttribute a) {
    return is_list(a, mlirAttributeIsAString);
}

static bool is_symbols(MlirAttribute a) {
    return is_list(a, mlirAttributeIsAFlatSymbolRef);
}

static bool is_numbers(MlirAttribute a) {
    return is_list(a, is_number);
}

static bool is_bools(MlirAttribute a) {
    return is_list(a, mlirAttributeIsABool);
}

const struct hec_kind *hec_kind_of(const char *name) {
    static const struct hec_kind kinds[] = {
        {"int", "irdl.base \"#builtin.integer\"", "a 64-bit integer", is_number},
        {"bool", "irdl.base \"#builtin.integer\"", "true or false", mlirAttributeIsABool},
        {"float", "irdl.base \"#builtin.float\"", "a floating-point number", mlirAttributeIsAFloat},
        {"string", "irdl.base \"#builtin.string\"", "a string", mlirAttributeIsAString},
        {"type", "irdl.base \"#builtin.type\"", "a type", mlirAttributeIsAType},
        {"symbol", "irdl.base \"#builtin.symbol_ref\"", "a symbol", mlirAttributeIsAFlatSymbolRef},
        {"strings", "irdl.base \"#builtin.array\"", "a list of strings", is_strings},
        {"symbols", "irdl.base \"#builtin.array\"", "a list of symbols", is_symbols},
        {"ints", "irdl.base \"#builtin.array\"", "a list of integers", is_numbers},
        {"bools", "irdl.base \"#builtin.array\"", "a list of true and false", is_bools},
        {"dictionary", "irdl.base \"#builtin.dictionary\"", "a dictionary",
         mlirAttributeIsADictionary},
        {"numbers", "irdl.base \"#builtin.dense_array\"", "array<f64: ...>",
         mlirAttributeIsADenseF64Array},
        {"table", "irdl.base \"#builtin.dense_array\"", "array<i32: ...>",
         mlirAttributeIsADenseI32Array},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strcmp(kinds[i].name, name) == 0) return &kinds[i];
    }
    return NULL;
}
