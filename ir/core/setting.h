// Settings of a module (hecate.settings): an attribute for each key of lang/settings.def.
// Its row says the type: counts are i64, numbers f64, flags i1, pairs array<f64>, texts strings.
// A word in the place of a number is a string, too: "auto", "auto(1, 2)".
// A module that lacks a setting has its default.
#ifndef HECATE_IR_CORE_SETTING_H
#define HECATE_IR_CORE_SETTING_H

#include "ir/core/ir.h"
#include "lang/settings.h"

// The attribute that `text` means: a value as struct hec_setting has it. Rows of other keys are NULL: a string.
MlirAttribute hec_setting_attribute(MlirContext c, const struct hec_setting_row *row,
                                    const char *text);

// Whether the module's settings are such attributes; reports the first that is not.
bool hec_settings_check(MlirOperation module);

// An attribute of hecate.settings or hecate.parts as the text that it stands for.
const char *hec_setting_print(struct hec_arena *arena, MlirAttribute value);

// A text or a word; empty where the setting is a number or a flag.
MlirStringRef hec_setting_text(MlirOperation module, enum hec_key key);
// Also of flags: "true", "false".
bool hec_setting_is(MlirOperation module, enum hec_key key, const char *word);
// Left to the compiler: `auto`, or `auto(a, b)`, which lists candidates.
bool hec_setting_is_auto(MlirOperation module, enum hec_key key);
// A number, or a count; `otherwise` where a word stands in its place.
double hec_setting_number(MlirOperation module, enum hec_key key, double otherwise);
int64_t hec_setting_count(MlirOperation module, enum hec_key key, int64_t otherwise);
// The bytes of a setting of type SLOTS; 0: it counts slots.
int64_t hec_setting_bytes(MlirOperation module, enum hec_key key);
// The counts of `auto(a, b)`, at most `most` of them; 0: none are listed.
int hec_setting_listed(MlirOperation module, enum hec_key key, int64_t *count, int most);

#endif
