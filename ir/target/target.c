// Targets by name.
#include "ir/target/target.h"

#include <assert.h>
#include <string.h>

#include "ir/accessors.h"
#include "lang/target.h"

static const struct hec_target *const targets[] = {
#define HEC_TARGET(name, text, lacks) &hec_target_##name,
#include "codegen/targets/targets.def"
};

static bool lists(const char *list, MlirStringRef word) {
    while (list && *list) {
        const size_t here = strcspn(list, "|");
        if (here == word.length && memcmp(list, word.data, here) == 0) return true;
        list += here + (list[here] == '|');
    }
    return false;
}

const struct hec_target *hec_target_find(MlirStringRef text) {
    if (text.length == 0) return NULL;
    const char *colon = memchr(text.data, ':', text.length);
    const size_t length = colon ? (size_t)(colon - text.data) : text.length;
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        const struct hec_target *target = targets[i];
        if (strlen(target->name) != length || memcmp(target->name, text.data, length) != 0)
            continue;
        const size_t from = length + 1;
        return !colon || lists(target->architectures,
                               mlirStringRefCreate(text.data + from, text.length - from))
                   ? target
                   : NULL;
    }
    return NULL;
}

const struct hec_target *hec_target_of(MlirOperation op) {
    const MlirOperation module = hec_module_of(op);
    if (!hec_op_is(module, HEC_OP_MODULE) || !hec_module_has_target(module)) return &hec_target_cpu;
    const struct hec_target *target = hec_target_find(hec_module_target(module));
    assert(target); // hec_target_verify
    return target;
}

// A model's own settings are checked with their places in the model; these may come from text.
static bool check_settings(MlirOperation module, const struct hec_target *target) {
    if (!hec_module_has_settings(module)) return true;
    const MlirAttribute all = hec_module_settings(module);
    bool sound = true;
    for (intptr_t i = 0; i < mlirDictionaryAttrGetNumElements(all); i++) {
        const MlirNamedAttribute setting = mlirDictionaryAttrGetElement(all, i);
        if (!mlirAttributeIsAString(setting.attribute)) continue;
        // Both end with a zero: names and strings of attributes are kept so.
        const char *key = mlirIdentifierStr(setting.name).data;
        const char *value = mlirStringAttrGetValue(setting.attribute).data;
        if (!hec_target_lacks(target->name, key, value)) continue;
        sound = hec_ir_error(module, "not yet: `%s = %s` (target %s)", key, value, target->name);
    }
    return sound;
}

bool hec_target_verify(MlirOperation module) {
    if (!hec_module_has_target(module)) return true;
    const MlirStringRef text = hec_module_target(module);
    const struct hec_target *target = hec_target_find(text);
    if (target) return check_settings(module, target);
    return hec_ir_error(module, "there is no target '%.*s'", (int)text.length, text.data);
}
