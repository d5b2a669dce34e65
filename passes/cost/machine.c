// The machine, from settings; time of operations by a roofline.
#include "passes/cost/machine.h"

#include "ir/accessors.h"
#include "ir/core/setting.h"
#include "passes/base/movement.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

const double hec_reached_of_flops = 0.5, hec_reached_of_bandwidth = 0.7, hec_reached_of_link = 0.95;

// ---- the machine

// A number that must be positive to count; `assumed` is set where it is not.
static double rate(MlirOperation module, enum hec_key key, double otherwise, bool *assumed) {
    const double value = hec_setting_number(module, key, 0);
    if (value > 0) return value;
    *assumed = true;
    return otherwise;
}

// Assumed without settings: a process with a few cores of a server, shared memory inside a node,
// 10 Gbit/s between nodes.
static void read_rates(MlirOperation module, struct hec_machine *m) {
    m->flops = rate(module, HEC_KEY_cluster_device_flops, 100e9, &m->assumed_device);
    m->memory_bandwidth = rate(module, HEC_KEY_cluster_device_bandwidth, 20e9, &m->assumed_device);
    m->memory = rate(module, HEC_KEY_cluster_device_memory, 16.0 * (1 << 30), &m->assumed_device);
    m->intra_bandwidth = rate(module, HEC_KEY_cluster_link_intra_bandwidth, 8e9, &m->assumed_links);
    m->intra_latency = rate(module, HEC_KEY_cluster_link_intra_latency, 2e-6, &m->assumed_links);
    bool assumed = false;
    m->host_bandwidth = rate(module, HEC_KEY_cluster_link_host_bandwidth, 25e9, &assumed);
    assumed = false;
    m->inter_bandwidth = rate(module, HEC_KEY_cluster_link_inter_bandwidth, 1.25e9, &assumed);
    m->inter_latency = rate(module, HEC_KEY_cluster_link_inter_latency, 30e-6, &assumed);
    m->assumed_links = m->assumed_links || (assumed && m->nodes > 1);
}

// The text of a setting; false: it has none.
static bool path_of(MlirOperation module, enum hec_key key, char path[PATH_MAX]) {
    const MlirStringRef text = hec_setting_text(module, key);
    snprintf(path, PATH_MAX, "%.*s", (int)text.length, text.data);
    return text.length > 0;
}

// Measured rates replace stated ones; rates left to the compiler are no longer assumed.
static bool read_device_times(MlirOperation module, struct hec_machine *m) {
    char path[PATH_MAX];
    if (!path_of(module, HEC_KEY_cluster_device_measured, path)) return true;
    if (!hec_measured_device(module, path, &m->times)) return false;
    m->measured_device = true;
    m->assumed_device = false;
    m->flops = hec_measured_flops(&m->times);
    m->memory_bandwidth = hec_measured_bandwidth(&m->times);
    return true;
}

static bool read_link_rates(MlirOperation module, struct hec_machine *m) {
    char path[PATH_MAX];
    struct hec_link_rates rates;
    if (!path_of(module, HEC_KEY_cluster_link_measured, path)) return true;
    if (!hec_measured_links(module, path, &rates)) return false;
    if (rates.intra_bandwidth > 0) {
        m->measured_intra = true;
        m->intra_bandwidth = rates.intra_bandwidth;
        m->intra_latency = rates.intra_latency;
    }
    if (rates.inter_bandwidth > 0) {
        m->measured_inter = true;
        m->inter_bandwidth = rates.inter_bandwidth;
        m->inter_latency = rates.inter_latency;
    }
    if (m->measured_intra && (m->measured_inter || m->nodes == 1)) m->assumed_links = false;
    return true;
}

bool hec_machine_of(MlirOperation module, struct hec_machine *m) {
    *m = (struct hec_machine){.nodes = hec_setting_count(module, HEC_KEY_cluster_nodes, 1)};
    const int64_t world = hec_module_has_world(module) ? hec_module_world(module) : 1;
    if (m->nodes < 1 || world % m->nodes != 0) m->nodes = 1;
    m->devices = world / m->nodes;
    m->states_on_host = hec_states_on_host(module);
    m->masters_on_host = hec_masters_on_host(module);
    const MlirStringRef name = hec_setting_text(module, HEC_KEY_cluster_device);
    const size_t length = name.length < sizeof m->device ? name.length : sizeof m->device - 1;
    memcpy(m->device, name.length ? name.data : "cpu", name.length ? length : 3);
    read_rates(module, m);
    return read_device_times(module, m) && read_link_rates(module, m);
}

// ---- rates and times

double hec_intra_rate(const struct hec_machine *m) {
    return m->intra_bandwidth * (m->measured_intra ? 1 : hec_reached_of_link);
}

double hec_inter_rate(const struct hec_machine *m) {
    return m->inter_bandwidth * (m->measured_inter ? 1 : hec_reached_of_link);
}

double hec_loop_us(const struct hec_machine *m, double bytes) {
    if (m->measured_device) return hec_measured_loop_us(&m->times, bytes);
    return 1e6 * (bytes / (hec_reached_of_bandwidth * m->memory_bandwidth));
}

double hec_op_us(const struct hec_machine *machine, MlirOperation op) {
    if (hec_op_of(op) >= HEC_OP_FUNC) return 0; // Upstream's end blocks and compute indices.
    if (machine->measured_device) {
        const double us = hec_measured_us(&machine->times, op, machine->nodes * machine->devices);
        if (us >= 0) return us;
    }
    const struct hec_cost cost = hec_op_cost(op);
    const double compute = 1e6 * (cost.flops / (hec_reached_of_flops * machine->flops));
    const double memory = hec_loop_us(machine, cost.bytes);
    return compute > memory ? compute : memory;
}

double hec_span_us(const struct hec_machine *machine, MlirBlock block, MlirOperation from,
                   MlirOperation to) {
    double us = 0;
    MlirOperation op =
        from.ptr ? mlirOperationGetNextInBlock(from) : mlirBlockGetFirstOperation(block);
    for (; op.ptr && !mlirOperationEqual(op, to); op = mlirOperationGetNextInBlock(op)) {
        if (!hec_op_is(op, HEC_OP_FOR)) {
            us += hec_op_us(machine, op);
            continue;
        }
        const struct hec_for loop = hec_for_of(op);
        const MlirOperation none = {0};
        if (loop.count > 0) us += (double)loop.count * hec_span_us(machine, loop.body, none, none);
    }
    return us;
}

int64_t hec_step_iterations(MlirOperation module, const struct hec_machine *m) {
    const int64_t tokens =
        hec_module_batch(module) * hec_module_positions(module) * m->nodes * m->devices;
    const double wanted = (double)hec_setting_count(module, HEC_KEY_train_tokens, 0);
    return wanted >= (double)tokens ? (int64_t)wanted / tokens : 1;
}
