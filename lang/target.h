// Settings that targets lack, by their names.
#ifndef HECATE_LANG_TARGET_H
#define HECATE_LANG_TARGET_H

#include <stdbool.h>

// Whether target `name`, which may have an architecture ("cuda:sm_90a"), cannot do `key` = `value` yet, though
// another target can. False for targets that targets.def does not list.
bool hec_target_lacks(const char *name, const char *key, const char *value);

#endif
