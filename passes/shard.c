// shard: who owns which expert first, and all choices of movement.
//
//   before   moe.set, hecate.settings
//   after    hecate.movement of the module
//
// Why      What moves, how much of it and when depends on loads, links and memory, not on the order
//          of operations. Everything after this pass reads the choices from the module.
// Needs    experts distributed (distribute-experts).
// Leaves   hecate.movement (passes/movement.h).
// Reports  A policy that does not exist.
#include <stdlib.h>
#include <string.h>

#include "passes/movement.h"
#include "passes/pass.h"
#include "runtime/plan/policy.h"

// The value of a setting; empty when the module has none.
static MlirStringRef setting(MlirOperation module, const char *key) {
    const MlirAttribute all = mlirOperationGetAttributeByName(module, HEC_STR("hecate.settings"));
    if (mlirAttributeIsNull(all) || !mlirAttributeIsADictionary(all)) return HEC_STR("");
    const MlirAttribute value = mlirDictionaryAttrGetElementByName(all, HEC_STR(key));
    const bool text = !mlirAttributeIsNull(value) && mlirAttributeIsAString(value);
    return text ? mlirStringAttrGetValue(value) : HEC_STR("");
}

static bool is(MlirStringRef text, const char *what) {
    return mlirStringRefEqual(text, HEC_STR(what));
}

static int64_t count_or(MlirOperation module, const char *key, int64_t otherwise) {
    const MlirStringRef text = setting(module, key);
    char *end;
    const int64_t value = text.length ? strtoll(text.data, &end, 10) : 0;
    return text.length && end != text.data ? value : otherwise;
}

static void choose_policy(MlirOperation module, struct hec_movement *m) {
    const MlirStringRef experts = hec_get_string(module, "hecate.experts");
    m->even = is(experts, "hecate") ||
              (is(experts, "fssdp") && is(setting(module, "parallel.placement.dispatch"), "even"));
    const MlirStringRef name = !is(experts, "fssdp") ? experts
                               : m->even             ? HEC_STR("hecate")
                                                     : HEC_STR("quota");
    const size_t length = name.length < HEC_POLICY_NAME ? name.length : HEC_POLICY_NAME - 1;
    memcpy(m->policy, name.data, length);
    m->policy[length] = 0;
}

static enum hec_pass_result run(MlirOperation module, const struct hec_pass_options *options) {
    (void)options;
    if (!hec_moves_experts(module)) return HEC_PASS_DONE;
    struct hec_movement m = {0};
    choose_policy(module, &m);
    const struct hpl_policy *policy = hpl_policy_find(m.policy);
    if (!policy) {
        hec_ir_error(module, "there is no policy '%s' to place experts with", m.policy);
        return HEC_PASS_REFUSED;
    }
    m.overlap = count_or(module, "parallel.placement.overlap", 4);
    m.slots = count_or(module, "parallel.placement.memory", 2);
    m.rematerialize = is(setting(module, "parallel.placement.rematerialize"), "true");
    m.calibrate =
        policy->calibrates && !is(setting(module, "parallel.placement.calibrate"), "false")
            ? HEC_CALIBRATE_WORTH
            : HEC_CALIBRATE_NEVER;
    m.window = count_or(module, "parallel.placement.forecast.iterations", 5);
    m.reshard_every = is(setting(module, "parallel.placement.reshard"), "never")
                          ? 0
                          : count_or(module, "parallel.placement.reshard.iterations", 100);
    m.row_compute = m.row_send = m.chunk_send = 1;
    hec_movement_write(module, &m);
    return HEC_PASS_DONE;
}

const struct hec_pass hec_pass_shard = {
    .flag = "shard",
    .summary = "Choose the first owners of experts, and how replicas move",
    .run = run,
};
