// Settings of a module: hecate.settings, a dictionary of texts.
#include "ir/setting.h"

#include <stdlib.h>
#include <string.h>

#include "ir/accessors.h"
#include "lang/scan.h"

MlirStringRef hec_setting(MlirOperation module, const char *key) {
    if (!hec_module_has_settings(module)) return HEC_STR("");
    const MlirAttribute all = hec_module_settings(module);
    const MlirAttribute value = mlirDictionaryAttrGetElementByName(all, HEC_STR(key));
    const bool text = !mlirAttributeIsNull(value) && mlirAttributeIsAString(value);
    return text ? mlirStringAttrGetValue(value) : HEC_STR("");
}

bool hec_setting_is(MlirOperation module, const char *key, const char *value) {
    return mlirStringRefEqual(hec_setting(module, key), HEC_STR(value));
}

double hec_setting_number(MlirOperation module, const char *key, double otherwise) {
    const MlirStringRef text = hec_setting(module, key);
    char copy[64] = "", *end = copy;
    if (text.length == 0 || text.length >= sizeof copy) return otherwise;
    memcpy(copy, text.data, text.length);
    const double value = strtod(copy, &end);
    return end != copy && *end == 0 ? value : otherwise;
}

int64_t hec_setting_count(MlirOperation module, const char *key, int64_t otherwise) {
    const MlirStringRef text = hec_setting(module, key);
    char copy[64] = "";
    int64_t count = 0;
    if (text.length == 0 || text.length >= sizeof copy) return otherwise;
    memcpy(copy, text.data, text.length);
    return hec_count_read(copy, &count) ? count : otherwise;
}

int hec_setting_listed(MlirOperation module, const char *key, int64_t *count, int most) {
    const MlirStringRef text = hec_setting(module, key);
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
