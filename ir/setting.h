// Settings of a module, as text.
#ifndef HECATE_IR_SETTING_H
#define HECATE_IR_SETTING_H

#include "ir/ir.h"

// Settings of the module (hecate.settings). Text is empty where there is none; a number is
// `otherwise` where there is none, or where it is left to the compiler (auto).
MlirStringRef hec_setting(MlirOperation module, const char *key);
bool hec_setting_is(MlirOperation module, const char *key, const char *value);
double hec_setting_number(MlirOperation module, const char *key, double otherwise);

#endif
