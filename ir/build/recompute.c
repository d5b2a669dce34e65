// Blocks with their own parallel.recompute: the setting's text is "elementwise(sparse = all, attention = cheap)".
#include "ir/build/recompute.h"

#include <stdlib.h>
#include <string.h>

#include "ir/accessors.h"

// The word of the setting for `name`, whose length is set; NULL where it has none.
static const char *find_own(const struct hec_program *program, const char *name, size_t *length) {
    const char *text = hec_program_text(program, HEC_KEY_parallel_recompute);
    const char *at = text ? strchr(text, '(') : NULL;
    while (at) {
        at += strspn(at, "(, ");
        const char *value = strstr(at, " = ") + 3;
        *length = strcspn(value, ",)");
        if ((size_t)(value - 3 - at) == strlen(name) && !strncmp(at, name, strlen(name)))
            return value;
        at = strchr(value, ',');
    }
    return NULL;
}

void hec_build_recompute(struct hec_build *build, const struct hec_unit *unit, MlirOperation func) {
    size_t length;
    const char *value = find_own(build->program, unit->name, &length);
    if (!value) return;
    const MlirContext c = build->context;
    const bool first = !hec_module_has_recompute(build->module);
    const MlirAttribute before = first ? (MlirAttribute){0} : hec_module_recompute(build->module);
    const intptr_t count = first ? 0 : mlirDictionaryAttrGetNumElements(before);
    MlirNamedAttribute *all = hec_checked(calloc((size_t)count + 1, sizeof *all));
    for (intptr_t i = 0; i < count; i++) all[i] = mlirDictionaryAttrGetElement(before, i);
    const MlirStringRef name = hec_any_sym_name(func);
    all[count] = mlirNamedAttributeGet(mlirIdentifierGet(c, name),
                                       mlirStringAttrGet(c, mlirStringRefCreate(value, length)));
    hec_module_put_recompute(build->module, mlirDictionaryAttrGet(c, count + 1, all));
    free(all);
}
