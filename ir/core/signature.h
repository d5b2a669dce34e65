// The signatures of ops.def, read word by word.
#ifndef HECATE_IR_CORE_SIGNATURE_H
#define HECATE_IR_CORE_SIGNATURE_H

#include "ir/core/ir.h"
#include "ir/core/word.h"

bool hec_find_word(const char *words, MlirStringRef name, struct hec_word *word);

// Whether `count` operands or results may stand for `words`, of which the last may be optional or variadic.
bool hec_fits_signature(const char *words, int count);

// Whether several operands of `words` may be missing: operandSegmentSizes says which are there.
bool hec_has_segments(const char *words);

// Kinds of an attribute. ops.def lists the kinds.
struct hec_kind {
    const char *name;
    const char *irdl; // As IRDL says it; it knows less.
    const char *text; // As an error says it: "a list of strings".
    bool (*is)(MlirAttribute value);
};
const struct hec_kind *hec_kind_of(const char *name); // NULL: there is none of that name.

#endif
