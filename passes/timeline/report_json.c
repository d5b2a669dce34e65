// Simulations as JSON, by jansson.
#include "passes/timeline/report_json.h"

#include <jansson.h>

#include "ir/accessors.h"
#include "ir/core/setting.h"
#include "passes/cost/memory.h"
#include "passes/cost/setup.h"

static const char *const path_names[HEC_PATH_OWN] = {
    [HEC_PATH_COMPUTE] = "computing", [HEC_PATH_EXPERTS] = "experts", [HEC_PATH_PLAN] = "planning"};

static json_t *spent_json(const double *spent) {
    json_t *all = json_object();
    for (int k = 0; k < HEC_SPENT; k++)
        json_object_set_new(all, hec_spent_names[k], json_real(spent[k]));
    return all;
}

static json_t *path_json(const struct hec_path *path) {
    json_t *all = json_object();
    for (int k = 0; k < HEC_PATH_OWN; k++)
        json_object_set_new(all, path_names[k], json_real(path->own[k]));
    for (int k = 0; k < HEC_LANES; k++)
        json_object_set_new(all, hec_lane_names[k], json_real(path->lane[k]));
    return all;
}

static json_t *steps_json(const struct hec_step_time *step, int64_t count) {
    json_t *all = json_array();
    for (int64_t i = 0; i < count; i++) {
        const struct hec_step_time *s = &step[i];
        json_t *one =
            json_pack("{s:f, s:f, s:f, s:f, s:f}", "us", s->us, "imbalance", s->imbalance,
                      "replicas", s->replicas, "exposed_us", s->exposed, "moved_chunks", s->moved);
        json_object_set_new(one, "spent_us", spent_json(s->spent));
        json_object_set_new(one, "slowest_us", spent_json(s->slowest));
        json_object_set_new(one, "path_us", path_json(&s->path));
        json_array_append_new(all, one);
    }
    return all;
}

static json_t *numbers_json(const double *number, int64_t count, double factor) {
    json_t *all = json_array();
    for (int64_t i = 0; i < count; i++) json_array_append_new(all, json_real(factor * number[i]));
    return all;
}

static json_t *links_json(const struct hec_machine *m, const double *carried, int64_t steps) {
    const int64_t devices = m->nodes * m->devices;
    const double part = 1 / (double)steps;
    json_t *all = json_object();
    json_object_set_new(all, "device_out", numbers_json(carried, devices, part));
    json_object_set_new(all, "device_in", numbers_json(carried + devices, devices, part));
    json_object_set_new(all, "node_out", numbers_json(carried + 2 * devices, m->nodes, part));
    json_object_set_new(all, "node_in",
                        numbers_json(carried + 2 * devices + m->nodes, m->nodes, part));
    return all;
}

static json_t *memory_json(const struct hec_memory *m) {
    json_t *all = json_pack("{s:I, s:I, s:I}", "all", (json_int_t)m->all, "device",
                            (json_int_t)m->device, "host", (json_int_t)m->host);
    for (int i = 0; i < HEC_MEMORY_ITEMS; i++)
        json_object_set_new(all, hec_memory_names[i].key, json_integer((json_int_t)m->item[i]));
    return all;
}

// Replicas as the policy's authors hold them: copies that stay have all that an owner has, and where every device
// gathers all experts, the next layer's come early.
static int64_t authors_replicas(const struct hec_setup *s) {
    const struct hec_costs *c = &s->costs;
    const struct hpl_movement *m = &s->movement;
    struct hpl_movement next = *m;
    int64_t bytes = 0;
    next.rematerialize = true;
    if (s->policy->collective != HPL_COLLECTIVE_EXCHANGE) {
        bytes = hec_replica_bytes(c, s->policy, m);
        for (int i = 0; i < c->count && hpl_gathers_all(s->policy); i++)
            bytes += hec_slots_of(c, &c->set[i], s->policy, &next).params;
    } else if (s->policy->replicas != HPL_REPLICAS_NONE) {
        for (int i = 0; i < c->count; i++)
            bytes += m->slots * c->set[i].layers * c->set[i].owner_bytes;
    }
    return bytes;
}

static int64_t saved_bytes(MlirOperation module) {
    int64_t bytes = 0;
    HEC_EACH_OF (slot, hec_ops_in(hec_module_body(module)), HEC_OP_slot) {
        const int64_t layers = hec_any_layers(slot);
        bytes += (layers > 0 ? layers : 1) * hec_type_bytes(hec_any_type(slot));
    }
    return bytes;
}

// As the paper counts, for comparing with it: parameters, gradients and states, no temporaries.
static json_t *paper_json(MlirOperation module, const struct hec_setup *s,
                          const struct hec_memory *m) {
    int64_t experts = 0, rest = 0;
    for (int i = 0; i < HEC_MEMORY_HELD; i++) {
        experts += m->item[i] - m->outside[i];
        rest += m->outside[i];
    }
    return json_pack("{s:I, s:I, s:I, s:I}", "experts", (json_int_t)experts, "replicas",
                     (json_int_t)(s->policy ? authors_replicas(s) : 0), "rest", (json_int_t)rest,
                     "saved", (json_int_t)saved_bytes(module));
}

static void set_memory(json_t *all, MlirOperation module, const struct hec_setup *setup) {
    struct hec_memory m;
    const bool placed = hec_memory_of(module, &m);
    json_object_set_new(all, "memory", placed ? memory_json(&m) : json_null());
    json_object_set_new(all, "paper_memory", placed ? paper_json(module, setup, &m) : json_null());
}

static json_t *movement_json(const struct hpl_movement *movement) {
    struct hpl_movement m = *movement;
    json_t *all =
        json_pack("{s:s, s:b, s:b, s:s, s:s}", "policy", m.policy, "even", (int)m.even,
                  "rematerialize", (int)m.rematerialize, "calibrate",
                  hec_calibrate_name(m.calibrate), "lifetime", hec_lifetime_name(m.lifetime));
    for (int k = 0; k < HEC_MOVEMENT_NUMBERS; k++)
        json_object_set_new(all, hec_movement_numbers[k].key,
                            json_integer((json_int_t)*hec_movement_at(&m, k)));
    return all;
}

static json_t *owners_json(const struct hec_owners *o) {
    if (o->every == 0) return json_null();
    return json_pack("{s:I, s:I, s:f, s:f, s:f}", "every", (json_int_t)o->every, "changes",
                     (json_int_t)o->changes, "chunks", o->chunks, "us", o->us, "us_of_a_step",
                     o->us_of_a_step);
}

void hec_timeline_json(MlirOperation module, const struct hec_estimate *e, FILE *out) {
    const struct hec_setup *setup = e->request.setup;
    const struct hec_machine *m = &setup->costs.machine;
    const MlirStringRef experts = hec_setting_text(module, HEC_KEY_parallel_experts);
    const struct hec_speed speed = hec_speed_of(module, m, e->us);
    json_t *all = json_pack("{s:I, s:I, s:s, s:s%, s:o}", "nodes", (json_int_t)m->nodes, "devices",
                            (json_int_t)m->devices, "device", m->device, "experts",
                            experts.data ? experts.data : "", experts.length, "loads",
                            setup->recorded ? json_string(setup->recorded) : json_null());
    json_object_set_new(all, "step_us", json_real(e->us));
    json_object_set_new(all, "tokens_per_second", json_real(speed.tokens / (1e-6 * e->us)));
    json_object_set_new(all, "mfu", json_real(speed.mfu));
    json_object_set_new(all, "run_seconds", json_real(1e-6 * e->us * speed.steps));
    json_object_set_new(all, "movement",
                        hec_moves_experts(module) ? movement_json(&setup->movement) : json_null());
    json_object_set_new(all, "new_owners", owners_json(&e->owners));
    json_object_set_new(all, "steps", steps_json(e->result.step, e->request.steps));
    json_object_set_new(all, "layer_us",
                        numbers_json(e->result.layer_us, hec_timeline_layers(setup), 1));
    json_object_set_new(all, "carried", links_json(m, e->result.carried, e->request.steps));
    set_memory(all, module, setup);
    json_dumpf(all, out, JSON_INDENT(1) | JSON_REAL_PRECISION(8));
    fputc('\n', out);
    json_decref(all);
}
