// Values of the IR as C: numbers, strings, words.
#include "codegen/host/literal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *hec_number(struct hec_emitter *e, double value) {
    for (int digits = 1; digits <= 17; digits++) {
        const char *text = HEC_TEXT(e, "%.*g", digits, value);
        if (strtod(text, NULL) == value) return text;
    }
    return HEC_TEXT(e, "%.17g", value);
}

const char *hec_real(struct hec_emitter *e, double value) {
    const bool single = strcmp(e->suffix, "f32") == 0;
    const char *text = hec_number(e, single ? (double)(float)value : value);
    if (value != value) return "NAN";
    if (value - value != 0) return value < 0 ? "-INFINITY" : "INFINITY";
    for (int digits = 1; single && digits <= 9; digits++) {
        text = HEC_TEXT(e, "%.*g", digits, value);
        if (strtof(text, NULL) == (float)value) break;
    }
    const char *point = strpbrk(text, ".e") ? "" : ".0";
    return HEC_TEXT(e, "%s%s%s", text, point, single ? "f" : "");
}

const char *hec_element_name(struct hec_emitter *e, MlirType type) {
    if (hec_type_is_rounded(type)) return "hk_bf16";
    return hec_type_is_real(type) ? e->real : "int32_t";
}

const char *hec_quote(struct hec_emitter *e, MlirStringRef text) {
    char *out = hec_arena_alloc(&e->arena, 4 * text.length + 3, 1), *at = out;
    *at++ = '"';
    for (size_t i = 0; i < text.length; i++) {
        const unsigned char c = (unsigned char)text.data[i];
        if (c == '"' || c == '\\') *at++ = '\\';
        if (c < 0x20 || c == 0x7f || c == '?') { // Also `?`: no trigraphs.
            at += sprintf(at, "\\%03o", c);
        } else {
            *at++ = (char)c;
        }
    }
    *at++ = '"';
    return out;
}

const char *hec_word(struct hec_emitter *e, MlirOperation op, const char *key,
                     const struct hec_word *table) {
    const MlirStringRef text = hec_get_string(op, key);
    for (; table->ir; table++) {
        if (mlirStringRefEqual(text, HEC_STR(table->ir))) return table->c;
    }
    hec_emit_fault(e, op, "has an unknown %s: \"%.*s\"", key, (int)text.length, text.data);
    return "0";
}
