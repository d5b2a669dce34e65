// The choices of movement as attributes, and where experts are needed.
#include "passes/base/movement.h"

#include <stdlib.h>
#include <string.h>

#include "ir/accessors.h"
#include "ir/core/setting.h"
#include "ir/target/target.h"
#include "runtime/plan/held.h"
#include "runtime/plan/policy.h"
#include "runtime/plan/types.h"

_Static_assert((int)HEC_IR_EXPERTS_MAX <= (int)HPL_EXPERTS_MAX, "the planner takes every set");

static bool is_text(MlirStringRef text, const char *what) {
    return mlirStringRefEqual(text, HEC_STR(what));
}

bool hec_has_ranks(MlirOperation module) {
    return hec_module_has_world(module);
}

bool hec_shares_states(MlirOperation module) {
    return hec_shards_dense(module) ||
           (hec_has_ranks(module) && hec_setting_is(module, HEC_KEY_parallel_dense, "states"));
}

bool hec_shards_dense(MlirOperation module) {
    return hec_has_ranks(module) && hec_setting_is(module, HEC_KEY_parallel_dense, "shard");
}

int64_t hec_gradient_way_bytes(MlirOperation module, int64_t bytes) {
    return hec_setting_is(module, HEC_KEY_parallel_gradients, "bf16") ? bytes / 2 : bytes;
}

bool hec_rows_cross_once(MlirOperation module) {
    return hec_has_ranks(module) && hec_setting_count(module, HEC_KEY_cluster_nodes, 1) > 1 &&
           hec_setting_is(module, HEC_KEY_parallel_rows, "node");
}

int64_t hec_kept_elements(MlirOperation module, MlirOperation symbol, int64_t elements) {
    const bool param = hec_op_is(symbol, HEC_OP_param);
    const bool cut =
        param ? hec_param_trainable(symbol) || hec_param_frozen(symbol) : !hec_set_owned(symbol);
    if (!cut || !hec_shards_dense(module)) return elements;
    return hpl_part(elements, hec_module_world(module));
}

bool hec_states_on_host(MlirOperation module) {
    return hec_target_of(module)->apart && hec_setting_is(module, HEC_KEY_parallel_states, "host");
}

bool hec_masters_on_host(MlirOperation module) {
    bool copies = false;
    HEC_EACH_OF (param, hec_ops_in(hec_module_body(module)), HEC_OP_param)
        copies = copies || hec_param_rounded(param);
    return copies && hec_states_on_host(module);
}

MlirOperation hec_dense_symbol(MlirOperation module, MlirStringRef name) {
    const MlirOperation param = hec_find_symbol(module, name), none = {0};
    if (!param.ptr) return none;
    if (!hec_param_has_set(param))
        return hec_param_trainable(param) || hec_param_frozen(param) ? param : none;
    const MlirOperation set = hec_find_symbol(module, hec_param_set(param));
    return hec_set_owned(set) ? none : set;
}

int64_t hec_dense_bytes(MlirOperation symbol) {
    if (hec_op_is(symbol, HEC_OP_param)) return hec_type_bytes(hec_any_type(symbol));
    const MlirStringRef set = hec_any_sym_name(symbol);
    int64_t bytes = 0;
    HEC_EACH_OF (op, hec_ops_in(mlirOperationGetBlock(symbol)), HEC_OP_param)
        if (mlirStringRefEqual(hec_any_set(op), set)) bytes += hec_type_bytes(hec_any_type(op));
    return bytes;
}

int64_t hec_gathered_bytes(MlirOperation symbol) {
    enum { COPY = 2 };
    if (!hec_op_is(symbol, HEC_OP_param) || !hec_param_copy_alone(symbol))
        return hec_dense_bytes(symbol);
    return COPY * hec_type_elements(hec_any_type(symbol));
}

bool hec_moves_experts(MlirOperation module) {
    if (!hec_has_ranks(module)) return false;
    if (hec_setting_is(module, HEC_KEY_parallel_experts, "ep") ||
        hec_setting_is(module, HEC_KEY_parallel_experts, "replicate"))
        return false;
    HEC_EACH_OF (op, hec_ops_in(hec_module_body(module)), HEC_OP_set) return true;
    return false;
}

// ---- choices

static const char *const calibrate_names[] = {"never", "worth", "always"};

const char *hec_calibrate_name(enum hpl_calibrates calibrate) {
    return calibrate_names[calibrate];
}

bool hec_calibrate_find(MlirStringRef name, enum hpl_calibrates *calibrate) {
    for (int i = HPL_CALIBRATES_NEVER; i <= HPL_CALIBRATES_ALWAYS; i++) {
        *calibrate = (enum hpl_calibrates)i;
        if (is_text(name, calibrate_names[i])) return true;
    }
    return false;
}

static const char *const lifetime_names[] = {"iteration", "step"};

const char *hec_lifetime_name(enum hpl_lifetime lifetime) {
    return lifetime_names[lifetime];
}

bool hec_lifetime_find(MlirStringRef name, enum hpl_lifetime *lifetime) {
    for (int i = HPL_LIFETIME_ITERATION; i <= HPL_LIFETIME_STEP; i++) {
        *lifetime = (enum hpl_lifetime)i;
        if (is_text(name, lifetime_names[i])) return true;
    }
    return false;
}

const char *hec_replicas_kept(const struct hpl_movement *movement) {
    const bool step = movement->lifetime == HPL_LIFETIME_STEP;
    if (movement->rematerialize)
        return step ? "re-materialized, gradients kept for a step" : "re-materialized";
    return step ? "kept for a step" : "kept until backward";
}

enum { WINDOW_MAX = 4096 }; // As parallel.placement.forecast.iterations: each takes memory.

#define NUMBER(name, least, most)                                                                  \
    { #name, offsetof(struct hpl_movement, name), least, most }

const struct hec_movement_number hec_movement_numbers[HEC_MOVEMENT_NUMBERS] = {
    NUMBER(overlap, 0, HPL_EXPERTS_MAX),
    NUMBER(slots, 0, HPL_EXPERTS_MAX),
    NUMBER(iterations, 1, INT32_MAX),
    NUMBER(window, 1, WINDOW_MAX),
    NUMBER(known, 0, 1),
    NUMBER(reshard_every, 0, INT64_MAX),
    NUMBER(gather_hidden_first, 0, INT32_MAX),
    NUMBER(gather_hidden, 0, INT32_MAX),
    NUMBER(reduce_hidden_first, 0, INT32_MAX),
    NUMBER(reduce_hidden, 0, INT32_MAX),
    NUMBER(row_compute, 0, HPL_PRICE_MAX),
    NUMBER(row_send, 0, HPL_PRICE_MAX),
    NUMBER(row_cross, 0, HPL_PRICE_MAX),
    NUMBER(chunk_send, 0, HPL_PRICE_MAX),
    NUMBER(chunk_near, 0, HPL_PRICE_MAX),
    NUMBER(grad_send, 0, HPL_PRICE_MAX),
    NUMBER(chunk_bytes, 0, HPL_PRICE_MAX),
    NUMBER(window_bytes, 0, HPL_PRICE_MAX),
    NUMBER(import_discount, 0, 100),
};

int64_t *hec_movement_at(struct hpl_movement *movement, int number) {
    return (int64_t *)((char *)movement + hec_movement_numbers[number].at);
}

static bool read_number(MlirAttribute from, const char *key, int64_t *number) {
    const MlirAttribute value = mlirDictionaryAttrGetElementByName(from, HEC_STR(key));
    if (mlirAttributeIsNull(value) || !mlirAttributeIsAInteger(value)) return false;
    *number = mlirIntegerAttrGetValueInt(value);
    return true;
}

static bool read_flag(MlirAttribute from, const char *key, bool *flag) {
    const MlirAttribute value = mlirDictionaryAttrGetElementByName(from, HEC_STR(key));
    if (mlirAttributeIsNull(value) || !mlirAttributeIsABool(value)) return false;
    *flag = mlirBoolAttrGetValue(value);
    return true;
}

static MlirStringRef text_of(MlirAttribute from, const char *key) {
    const MlirAttribute value = mlirDictionaryAttrGetElementByName(from, HEC_STR(key));
    const bool text = !mlirAttributeIsNull(value) && mlirAttributeIsAString(value);
    return text ? mlirStringAttrGetValue(value) : HEC_STR("");
}

bool hec_movement_read(MlirOperation module, struct hpl_movement *movement) {
    const MlirAttribute all = mlirOperationGetAttributeByName(module, HEC_STR("hecate.movement"));
    *movement = (struct hpl_movement){0};
    if (mlirAttributeIsNull(all) || !mlirAttributeIsADictionary(all)) return false;
    for (int i = 0; i < HEC_MOVEMENT_NUMBERS; i++) {
        if (!read_number(all, hec_movement_numbers[i].key, hec_movement_at(movement, i)))
            return false;
    }
    if (!read_flag(all, "even", &movement->even) ||
        !read_flag(all, "rematerialize", &movement->rematerialize))
        return false;
    const MlirStringRef policy = text_of(all, "policy");
    if (policy.length == 0 || policy.length >= HPL_POLICY_NAME) return false;
    memcpy(movement->policy, policy.data, policy.length);
    return hec_calibrate_find(text_of(all, "calibrate"), &movement->calibrate) &&
           hec_lifetime_find(text_of(all, "lifetime"), &movement->lifetime);
}

bool hec_movement_check(MlirOperation module) {
    struct hpl_movement movement;
    if (!hec_module_has_movement(module)) return true;
    if (!hec_movement_read(module, &movement))
        return hec_ir_error(module, "hecate.movement is not whole: pass shard writes it");
    const struct hpl_policy *policy = hpl_policy_find(movement.policy);
    if (!policy)
        return hec_ir_error(module, "hecate.movement: the planner has no policy '%s'",
                            movement.policy);
    if (movement.lifetime == HPL_LIFETIME_STEP && !hpl_may_last(policy))
        return hec_ir_error(module, "hecate.movement: replicas of '%s' cannot live for a step",
                            movement.policy);
    bool sound = true;
    for (int i = 0; i < HEC_MOVEMENT_NUMBERS; i++) {
        const struct hec_movement_number *n = &hec_movement_numbers[i];
        const int64_t value = *hec_movement_at(&movement, i);
        if (value >= n->least && value <= n->most) continue;
        sound = hec_ir_error(
            module, "hecate.movement: %s must be from %" PRId64 " to %" PRId64 ", not %" PRId64,
            n->key, n->least, n->most, value);
    }
    return sound;
}

void hec_movement_write(MlirOperation module, const struct hpl_movement *movement) {
    const MlirContext c = mlirOperationGetContext(module);
    struct hpl_movement m = *movement;
    MlirNamedAttribute entry[HEC_MOVEMENT_NUMBERS + 5];
    int count = 0;
    for (int i = 0; i < HEC_MOVEMENT_NUMBERS; i++) {
        entry[count++] = hec_attr_int(c, hec_movement_numbers[i].key, *hec_movement_at(&m, i));
    }
    entry[count++] = hec_attr_bool(c, "even", movement->even);
    entry[count++] = hec_attr_bool(c, "rematerialize", movement->rematerialize);
    entry[count++] = hec_attr_string(c, "policy", movement->policy);
    entry[count++] = hec_attr_string(c, "calibrate", hec_calibrate_name(movement->calibrate));
    entry[count++] = hec_attr_string(c, "lifetime", hec_lifetime_name(movement->lifetime));
    hec_module_put_movement(module, mlirDictionaryAttrGet(c, count, entry));
}

// ---- places

static struct hec_site *site_of(MlirOperation module, struct hec_sites *sites, MlirOperation op) {
    const MlirOperation set = hec_find_symbol(module, hec_any_set(op));
    for (int i = 0; i < sites->count; i++) {
        if (mlirOperationEqual(sites->site[i].set, set)) return &sites->site[i];
    }
    if (sites->count == HEC_SITES_MAX) return NULL;
    struct hec_site *site = &sites->site[sites->count++];
    *site = (struct hec_site){.set = set};
    return site;
}

// The loop over layers around `op`; its layer.
static MlirOperation loop_around(MlirOperation op, MlirValue *layer) {
    const MlirOperation parent = mlirOperationGetParentOperation(op);
    if (!hec_op_is(parent, HEC_OP_FOR)) return (MlirOperation){0};
    *layer = hec_for_of(parent).layer;
    return parent;
}

static void note(struct hec_sites *sites, struct hec_site *site, MlirOperation op, bool back) {
    switch (hec_op_of(op)) {
    case HEC_OP_exchange:
        site->exchange = op;
        break;
    case HEC_OP_await_counts:
        site->counts = op;
        break;
    case HEC_OP_waves:
        *(back ? &site->waves_back : &site->waves) = op;
        break;
    case HEC_OP_collect:
        site->collect = op;
        site->loop = loop_around(op, &site->layer);
        break;
    case HEC_OP_collect_grad:
        site->collect_back = op;
        site->loop_back = loop_around(op, &site->layer_back);
        sites->back[sites->backs++] = (int)(site - sites->site);
        break;
    default:
        break;
    }
}

static bool find_in(MlirOperation module, struct hec_sites *sites, const char *func) {
    const MlirOperation in = hec_find_symbol(module, HEC_STR(func));
    if (!hec_op_is(in, HEC_OP_FUNC)) return true;
    const struct hec_ops ops = hec_ops_below(in);
    bool sound = true;
    for (int k = 0; sound && k < ops.count; k++) {
        const enum hec_op id = hec_op_of(ops.op[k]);
        if (id != HEC_OP_exchange && id != HEC_OP_await_counts && id != HEC_OP_waves &&
            id != HEC_OP_collect && id != HEC_OP_collect_grad)
            continue;
        struct hec_site *site = site_of(module, sites, ops.op[k]);
        if (site) {
            note(sites, site, ops.op[k], strcmp(func, "backward") == 0);
        } else {
            sound = hec_ir_error(ops.op[k], "not yet: more than %d sets of experts", HEC_SITES_MAX);
        }
    }
    free(ops.op);
    return sound;
}

bool hec_sites_find(MlirOperation module, struct hec_sites *sites) {
    sites->count = sites->backs = 0;
    if (!find_in(module, sites, "forward") || !find_in(module, sites, "backward")) return false;
    for (int i = 0; i < sites->count; i++) {
        const struct hec_site *s = &sites->site[i];
        const bool forward = s->exchange.ptr && s->counts.ptr && s->waves.ptr && s->collect.ptr;
        if (forward && !s->waves_back.ptr == !s->collect_back.ptr) continue;
        return hec_ir_error(s->set,
                            "its experts are not distributed: run distribute-experts first");
    }
    return true;
}

// ---- what does not need the experts

struct hec_ops hec_independent(const struct hec_site *site) {
    struct hec_ops found = hec_ops_in(mlirOperationGetBlock(site->collect));
    const MlirStringRef mixture = hec_set_mixture(site->set);
    struct hec_map behind = {0}; // Results of what stays behind the counts.
    bool begun = false, passed = false;
    int count = 0;
    for (int k = 0; k < found.count; k++) {
        const MlirOperation op = found.op[k];
        begun |= mlirOperationEqual(op, site->counts);
        if (begun) {
            const bool movable = passed && hec_unit_is_in(op, mixture) &&
                                 (hec_op_traits(op)->pure || hec_op_is(op, HEC_OP_stash));
            bool needs = !movable;
            for (int i = 0; i < mlirOperationGetNumOperands(op) && !needs; i++) {
                needs = hec_map_get(&behind, hec_operand(op, i).ptr);
            }
            for (int i = 0; i < mlirOperationGetNumResults(op) && needs; i++) {
                *hec_map_at(&behind, hec_result(op, i).ptr) = 1;
            }
            if (!needs) found.op[count++] = op;
        }
        passed |= mlirOperationEqual(op, site->collect);
    }
    found.count = count;
    hec_map_free(&behind);
    return found;
}
