// Settings of a module, as text.
#ifndef HECATE_IR_SETTING_H
#define HECATE_IR_SETTING_H

#include "ir/ir.h"

// Settings of the module (hecate.settings). Text is empty where there is none; a number is
// `otherwise` where there is none, or where it is left to the compiler (auto).
MlirStringRef hec_setting(MlirOperation module, const char *key);
bool hec_setting_is(MlirOperation module, const char *key, const char *value);
double hec_setting_number(MlirOperation module, const char *key, double otherwise);
// A count, with a unit or without.
int64_t hec_setting_count(MlirOperation module, const char *key, int64_t otherwise);
// The counts of `auto(a, b)`, at most `most` of them; 0: none are listed.
int hec_setting_listed(MlirOperation module, const char *key, int64_t *count, int most);

#endif
