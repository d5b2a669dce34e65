// Sums the items of a placed module.
#include "passes/cost/memory.h"

#include "ir/accessors.h"
#include "ir/core/setting.h"
#include "ir/target/target.h"
#include "passes/base/movement.h"
#include "passes/base/rewrite.h"
#include "passes/cost/held.h"
#include "passes/cost/setup.h"
#include "passes/cost/under_way.h"

enum { STATES = 2 }; // AdamW's two means; Muon has one, and AdamW's for the rest.

const struct hec_memory_name hec_memory_names[HEC_MEMORY_ITEMS] = {
    [HEC_MEMORY_PARAMETERS] = {"parameters", "parameters"},
    [HEC_MEMORY_COPIES] = {"copies", "rounded copies"},
    [HEC_MEMORY_GRADIENTS] = {"gradients", "gradients"},
    [HEC_MEMORY_STATES] = {"states", "optimizer states"},
    [HEC_MEMORY_ARENA] = {"arena", "arena"},
    [HEC_MEMORY_REPLICAS] = {"replicas", "replicas"},
    [HEC_MEMORY_ROWS] = {"rows", "rows under way"},
    [HEC_MEMORY_SUMS] = {"sums", "sums under way"},
    [HEC_MEMORY_UNITS] = {"units", "units under way"},
    [HEC_MEMORY_MESSAGES] = {"messages", "messages, about"},
    [HEC_MEMORY_MUON] = {"muon", "Muon's scratch"},
    [HEC_MEMORY_SCRATCH] = {"scratch", "scratch"},
    [HEC_MEMORY_PROGRAM] = {"program", "program"},
};

static int64_t larger(int64_t a, int64_t b) {
    return a > b ? a : b;
}

// Muon's scratch, as hrt_train_muon_bytes of the runtime: twice the largest of its matrices, and twice the longest of
// the shorter sides, squared; on a device with separate memory for several at a time.
static int64_t muon_bytes(MlirOperation module) {
    enum { MOST = 32, ROOM = 512 << 20 };
    int64_t largest = 0, longest = 0;
    if (!hec_setting_is(module, HEC_KEY_train_optimizer, "muon")) return 0;
    HEC_EACH_OF (param, hec_ops_in(hec_module_body(module)), HEC_OP_param) {
        if (!hec_param_muon(param)) continue;
        const MlirAttribute matrix = mlirOperationGetAttributeByName(param, HEC_STR("matrix"));
        if (mlirAttributeIsNull(matrix)) continue;
        const int64_t rows = mlirIntegerAttrGetValueInt(mlirArrayAttrGetElement(matrix, 0));
        const int64_t columns = mlirIntegerAttrGetValueInt(mlirArrayAttrGetElement(matrix, 1));
        largest = larger(largest, hec_param_elements(param));
        longest = larger(longest, rows < columns ? rows : columns);
    }
    const int64_t bytes = 2 * (largest + longest * longest) * hec_held_element_bytes(module);
    const int64_t most = hec_target_of(module)->apart && bytes ? ROOM / bytes : 1;
    return bytes * (most < 1 ? 1 : most > MOST ? MOST : most);
}

static void find_held(MlirOperation module, struct hec_memory *m) {
    static const enum hpl_buffer buffer[HEC_MEMORY_HELD] = {HPL_PARAMETERS, HPL_COPIES,
                                                            HPL_GRADIENTS, HPL_STATE};
    struct hec_arena arena = {0};
    for (int i = 0; i < HEC_MEMORY_HELD; i++) {
        const struct hec_held_bytes held = hec_held_bytes(&arena, module, buffer[i]);
        const int64_t times = i == HEC_MEMORY_STATES ? STATES : 1;
        m->item[i] = times * held.all;
        m->outside[i] = times * held.outside;
        m->ep[i] = times * held.ep;
        m->model[i] = times * held.model;
        m->model_outside[i] = times * held.model_outside;
    }
    hec_arena_free(&arena);
}

// Bytes of replicas on a device; 0 where experts stay.
static int64_t replicas_of(MlirOperation module) {
    struct hpl_movement m;
    struct hec_costs costs;
    if (!hec_moves_experts(module) || !hec_movement_read(module, &m)) return 0;
    const struct hpl_policy *policy = hpl_policy_find(m.policy);
    if (!policy || !hec_costs_of(module, &costs)) return 0;
    return hec_replica_bytes(&costs, policy, &m);
}

static void find_under_way(MlirOperation module, struct hec_memory *m) {
    const struct hec_under_way u = hec_under_way_of(module);
    m->item[HEC_MEMORY_ROWS] = u.rows;
    m->item[HEC_MEMORY_SUMS] = u.sums;
    m->item[HEC_MEMORY_UNITS] = u.units;
    m->item[HEC_MEMORY_MESSAGES] = u.messages;
    m->item[HEC_MEMORY_PROGRAM] = u.program;
}

static void leave_to_host(struct hec_memory *m, enum hec_memory_item item) {
    m->host += m->item[item];
    m->item[item] = m->outside[item] = m->ep[item] = 0;
    m->model[item] = m->model_outside[item] = 0;
}

// Parameters of experts that GEMMs read copies of.
static void leave_masters(MlirOperation module, struct hec_memory *m) {
    struct hec_arena arena = {0};
    const enum hec_memory_item item = HEC_MEMORY_PARAMETERS;
    const struct hec_held_bytes read = hec_held_bytes(&arena, module, HPL_READ);
    m->host += m->item[item] - read.all;
    m->item[item] = read.all;
    m->outside[item] = read.outside;
    m->ep[item] = read.ep;
    m->model[item] = read.model;
    m->model_outside[item] = read.model_outside;
    hec_arena_free(&arena);
}

bool hec_memory_of(MlirOperation module, struct hec_memory *m) {
    if (!hec_module_has_arena_bytes(module)) return false;
    *m = (struct hec_memory){
        .device = (int64_t)hec_setting_number(module, HEC_KEY_cluster_device_memory, 0),
        .ranks = hec_module_has_world(module) ? hec_module_world(module) : 1,
    };
    find_held(module, m);
    if (hec_states_on_host(module)) leave_to_host(m, HEC_MEMORY_STATES);
    if (hec_masters_on_host(module)) leave_masters(module, m);
    m->item[HEC_MEMORY_ARENA] = hec_module_arena_bytes(module);
    m->item[HEC_MEMORY_REPLICAS] = replicas_of(module);
    find_under_way(module, m);
    m->item[HEC_MEMORY_MUON] = muon_bytes(module);
    m->item[HEC_MEMORY_SCRATCH] = hec_target_of(module)->scratch_bytes;
    for (int i = 0; i < HEC_MEMORY_ITEMS; i++) m->all += m->item[i];
    return true;
}
