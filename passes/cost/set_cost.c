// Costs of each set, from the module.
#include "passes/cost/set_cost.h"

#include <stdlib.h>
#include <string.h>

#include "ir/accessors.h"
#include "ir/target/target.h"
#include "passes/base/movement.h"
#include "passes/base/packing.h"
#include "runtime/plan/types.h"

static bool holds(MlirOperation op, enum hec_op id) {
    if (hec_op_is(op, id)) return true;
    if (!hec_op_is(op, HEC_OP_FOR)) return false;
    HEC_EACH (one, hec_ops_below(op))
        if (hec_op_is(one, id)) return true;
    return false;
}

// The last operation before `op` in its block that is, or holds, an `id`; null: there is none.
static MlirOperation last_before(MlirOperation op, enum hec_op id) {
    MlirOperation found = {0};
    for (MlirOperation at = mlirBlockGetFirstOperation(mlirOperationGetBlock(op));
         !mlirOperationEqual(at, op); at = mlirOperationGetNextInBlock(at)) {
        if (holds(at, id)) found = at;
    }
    return found;
}

static MlirOperation last_in(MlirBlock block, enum hec_op id) {
    MlirOperation found = {0};
    HEC_EACH_IN (at, block) {
        if (holds(at, id)) found = at;
    }
    return found;
}

// Passes materialize and overlap put starts behind the mixture before, and around a loop's edge. Windows leave
// out the experts' computation: it depends on loads.
static void find_windows(const struct hec_machine *machine, const struct hec_site *site,
                         struct hec_set_cost *cost) {
    const MlirOperation none = {0};
    MlirBlock block = mlirOperationGetBlock(site->waves);
    cost->window_us =
        hec_span_us(machine, block, last_before(site->waves, HEC_OP_collect), site->waves);
    const struct hec_ops moved = hec_independent(site); // Before the await, by pass overlap.
    double shared = 0;
    for (int k = 0; k < moved.count; k++) shared += hec_op_us(machine, moved.op[k]);
    free(moved.op);
    cost->window_us += shared;
    if (!site->collect_back.ptr) return;
    block = mlirOperationGetBlock(site->collect_back);
    cost->reduce_window_us = hec_span_us(machine, block, site->collect_back, none);
    const MlirOperation before = last_before(site->waves_back, HEC_OP_collect_grad);
    cost->rematerialize_window_us = hec_span_us(machine, block, before, site->waves_back);
    if (before.ptr || !site->loop_back.ptr) return;
    cost->rematerialize_window_us +=
        hec_span_us(machine, block, last_in(block, HEC_OP_collect_grad), none);
}

// The body of the loop over waves behind `waves`; null where there is none.
static MlirBlock wave_of(MlirOperation waves) {
    MlirOperation op = waves;
    while (op.ptr && !hec_op_is(op, HEC_OP_FOR)) op = mlirOperationGetNextInBlock(op);
    return op.ptr ? hec_for_of(op).body : (MlirBlock){0};
}

// Time of a wave, without the recomputation of overwritten rows.
static double wave_us(const struct hec_machine *machine, MlirBlock wave) {
    const MlirOperation none = {0};
    return wave.ptr ? hec_span_us(machine, wave, none, none) : 0;
}

// Whether GEMMs read a copy of the parameter in bf16; `param` empty: any parameter.
static bool is_rounded(MlirOperation module, MlirStringRef param) {
    HEC_EACH (op, hec_ops_below(module))
        if (hec_op_is(op, HEC_OP_get) && hec_type_is_rounded(mlirValueGetType(hec_result(op, 0))) &&
            (!param.length || mlirStringRefEqual(hec_any_param(op), param)))
            return true;
    return false;
}

// Elements for one expert, before the layout is known: a packed matrix counts as one whose panels are full.
static int64_t elements_of(MlirOperation module, MlirOperation set, MlirOperation param,
                           bool rounded) {
    const int64_t all = hec_type_elements(hec_param_type(param)) / hec_set_experts(set);
    const int64_t panel = hec_target_of(module)->panel_columns;
    const struct hec_packing *packing = rounded ? hec_packing_of(module, param) : NULL;
    if (!packing) return all;
    return hec_packed_elements(packing, all / panel, panel, panel);
}

// Elements of one chunk: all, of parameters that no GEMM reads in bf16, of those that have nothing but the copy, and of
// trained ones. Padding counts where the layout is known (place-buffers), and the padding of a chunk where all of it is
// trained.
struct chunk {
    int64_t all, plain, copied_only, trained;
};

static struct chunk chunk_of(MlirOperation module, MlirOperation set) {
    const MlirStringRef name = hec_set_sym_name(set);
    struct chunk chunk = {0};
    HEC_EACH_OF (param, hec_ops_in(hec_module_body(module)), HEC_OP_param) {
        if (!mlirStringRefEqual(hec_param_set(param), name)) continue;
        const bool rounded = is_rounded(module, hec_param_sym_name(param));
        const int64_t own = hec_param_has_elements(param)
                                ? hec_param_elements(param)
                                : elements_of(module, set, param, rounded);
        chunk.all += own;
        if (!rounded) chunk.plain += own;
        if (rounded && hec_param_frozen(param)) chunk.copied_only += own;
        if (hec_param_trainable(param)) chunk.trained += own;
    }
    const bool whole = chunk.trained == chunk.all;
    if (hec_set_has_chunk_elements(set)) chunk.all = hec_set_chunk_elements(set);
    if (whole) chunk.trained = chunk.all;
    return chunk;
}

static void find_set(MlirOperation module, const struct hec_machine *machine,
                     const struct hec_site *site, struct hec_set_cost *cost) {
    const MlirStringRef name = hec_set_sym_name(site->set);
    const size_t length = name.length < HEC_SET_NAME ? name.length : HEC_SET_NAME - 1;
    memcpy(cost->name, name.data, length);
    const int64_t layers = hec_set_layers(site->set);
    cost->experts = (int32_t)hec_set_experts(site->set);
    cost->layers = layers > 0 ? layers : 1;
    cost->rows = hec_module_batch(module) * hec_module_positions(module) * hec_set_topk(site->set);
    cost->wave_rows = hec_set_wave_rows(site->set);
    cost->picks = (int32_t)hec_set_topk(site->set);
    cost->once = hec_rows_cross_once(module);
    const MlirType y = mlirValueGetType(hec_collect_y(site->collect));
    const int64_t tokens = cost->rows / hec_set_topk(site->set);
    cost->row_bytes = hec_type_bytes(y) / tokens;
    const int64_t real = hec_type_bytes(hec_type_unrounded(y)) / hec_type_elements(y);
    const struct chunk chunk = chunk_of(module, site->set);
    const int64_t copy = is_rounded(module, HEC_STR("")) && chunk.plain < chunk.all ? 2 : 0;
    cost->grad_bytes = chunk.trained * real;
    cost->grad_way_bytes = hec_gradient_way_bytes(module, cost->grad_bytes);
    cost->chunk_bytes = copy * chunk.all + (copy ? chunk.plain : chunk.all) * real;
    cost->owner_bytes =
        (chunk.all - chunk.copied_only) * real + 3 * cost->grad_bytes + copy * chunk.all;
    const double room = (double)(cost->wave_rows > 0 ? cost->wave_rows : 1);
    cost->row_forward_us = wave_us(machine, wave_of(site->waves)) / room;
    if (site->waves_back.ptr)
        cost->row_backward_us = wave_us(machine, wave_of(site->waves_back)) / room;
    find_windows(machine, site, cost);
}

// Checks the numbers that every module for several ranks has; text may lack them.
static bool check_numbers(MlirOperation module) {
    static const char *const number[] = {"hecate.world", "hecate.batch", "hecate.positions"};
    for (int i = 0; i < 3; i++) {
        if (hec_has_attr(module, number[i])) continue;
        return hec_ir_error(module, "has no %s: experts cannot move", number[i]);
    }
    return true;
}

// Limits of the planner, and of what a search may take.
static bool check_sizes(MlirOperation module, MlirOperation set) {
    enum { LAYERS_MAX = 10000 };
    const int64_t world = hec_module_world(module);
    const int64_t experts = hec_set_experts(set), topk = hec_set_topk(set);
    const double rows = (double)world * (double)hec_module_batch(module) *
                        (double)hec_module_positions(module) * (double)topk;
    if (world >= 1 && world <= HPL_DEVICES_MAX && experts >= 1 && experts <= HPL_EXPERTS_MAX &&
        topk >= 1 && hec_set_layers(set) <= LAYERS_MAX && rows >= 1 && rows < HPL_ROWS_MAX)
        return true;
    return hec_ir_error(set, "has more experts, layers, devices or rows than the planner takes");
}

int64_t hec_fitting(const struct hec_machine *m, double us, int64_t bytes) {
    const double link = m->nodes > 1 ? hec_inter_rate(m) : hec_intra_rate(m);
    const double latency = m->nodes > 1 ? m->inter_latency : m->intra_latency;
    const double count = (1e-6 * us - latency) * link / (double)(bytes > 0 ? bytes : 1);
    if (count >= INT32_MAX) return INT32_MAX;
    return count > 0 ? (int64_t)count : 0;
}

// A time as a price. A link slower than any price gets the highest one.
static int64_t price_of(double picoseconds) {
    return picoseconds < (double)HPL_PRICE_MAX ? (int64_t)picoseconds + 1 : HPL_PRICE_MAX;
}

static void raise(int64_t *to, double picoseconds) {
    const int64_t price = price_of(picoseconds);
    if (price > *to) *to = price;
}

static void lower(int64_t *to, int64_t value) {
    if (value < *to) *to = value;
}

void hec_set_prices(struct hpl_movement *p, const struct hec_machine *m,
                    const struct hec_set_cost *set, int count) {
    const bool several = m->nodes > 1;
    const double near = 1e12 / m->intra_bandwidth; // One byte.
    const double far = several ? 1e12 / m->inter_bandwidth : near;
    p->gather_hidden_first = p->gather_hidden = INT32_MAX;
    p->reduce_hidden_first = p->reduce_hidden = INT32_MAX;
    for (int i = 0; i < count; i++) {
        const struct hec_set_cost *c = &set[i];
        lower(&p->gather_hidden_first, hec_fitting(m, c->window_us, c->chunk_bytes));
        lower(&p->gather_hidden, hec_fitting(m, hec_early_window_us(c), c->chunk_bytes));
        lower(&p->reduce_hidden_first, hec_fitting(m, c->reduce_window_us, c->grad_way_bytes));
        lower(&p->reduce_hidden, hec_fitting(m, hec_late_window_us(c), c->grad_way_bytes));
        raise(&p->row_compute, 1e6 * c->row_forward_us);
        raise(&p->row_send, near * (double)c->row_bytes);
        raise(&p->chunk_send, far * (double)c->chunk_bytes);
        if (c->chunk_bytes > p->chunk_bytes) p->chunk_bytes = c->chunk_bytes;
        if (!several) continue;
        raise(&p->row_cross, far * (double)c->row_bytes);
        raise(&p->grad_send, far * (double)c->grad_way_bytes);
        raise(&p->chunk_near, near * (double)c->chunk_bytes);
    }
}

bool hec_costs_of(MlirOperation module, struct hec_costs *costs) {
    struct hec_sites sites;
    *costs = (struct hec_costs){0};
    if (!hec_machine_of(module, &costs->machine) || !hec_sites_find(module, &sites) ||
        !check_numbers(module))
        return false;
    costs->count = sites.count;
    for (int i = 0; i < sites.count; i++) {
        if (!check_sizes(module, sites.site[i].set)) return false;
        find_set(module, &costs->machine, &sites.site[i], &costs->set[i]);
    }
    return true;
}
