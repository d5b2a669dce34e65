// Asks the setting and the target.
#include "passes/base/packing.h"

#include "ir/accessors.h"
#include "ir/core/setting.h"

const struct hec_packing *hec_packing_named(const struct hec_target *target, MlirStringRef name) {
    for (const struct hec_packing *packing = target->packings; packing && packing->name;
         packing++) {
        if (mlirStringRefEqual(name, HEC_STR(packing->name))) return packing;
    }
    return NULL;
}

static bool is_head(MlirOperation param) {
    const MlirStringRef role = hec_param_role(param);
    return hec_param_has_role(param) && !mlirStringRefEqual(role, HEC_STR("router"));
}

const struct hec_packing *hec_packing_of(MlirOperation module, MlirOperation param) {
    const struct hec_target *target = hec_target_of(module);
    if (!hec_param_frozen(param) || !hec_setting_is(module, HEC_KEY_train_precision, "bf16"))
        return NULL;
    if (hec_setting_is(module, HEC_KEY_adapt_base, "mxfp4"))
        return hec_param_has_set(param) ? hec_packing_named(target, HEC_STR("mxfp4")) : NULL;
    if (!hec_setting_is(module, HEC_KEY_adapt_base, "fp8") || is_head(param)) return NULL;
    return hec_packing_named(target, HEC_STR("fp8"));
}

int64_t hec_packed_elements(const struct hec_packing *packing, int64_t rows, int64_t columns,
                            int64_t panel) {
    const int64_t blocks = (rows + packing->rows - 1) / packing->rows;
    return (columns + panel - 1) / panel * blocks * packing->block_bytes / 2;
}
