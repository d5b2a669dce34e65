// Values of the IR as C: numbers, strings, words.
#ifndef HECATE_CODEGEN_HOST_LITERAL_H
#define HECATE_CODEGEN_HOST_LITERAL_H

#include "codegen/host/emitter.h"

const char *hec_real(struct hec_emitter *e, double value);   // A literal: "0.5f"
const char *hec_number(struct hec_emitter *e, double value); // "0.5", shortest that reads back.

// The C type of a tensor's elements: "float", "int32_t", "hk_bf16".
const char *hec_element_name(struct hec_emitter *e, MlirType type);

const char *hec_quote(struct hec_emitter *e, MlirStringRef text); // A string literal.

// The C constant for a word of the IR. A table ends with {0}.
struct hec_word {
    const char *ir, *c;
};

// The constant for the word at `key` of `op`; a fault when it is not in the table.
const char *hec_word(struct hec_emitter *e, MlirOperation op, const char *key,
                     const struct hec_word *table);

#endif
