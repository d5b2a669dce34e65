// The cost of the experts of one set in an iteration: rows, chunks, and the computation behind which
// chunks can travel. hec_set_cost holds numbers from the module: the simulation sees no IR.
#ifndef HECATE_PASSES_COST_SET_COST_H
#define HECATE_PASSES_COST_SET_COST_H

#include "passes/base/movement.h"
#include "passes/cost/machine.h"
#include "runtime/plan/types.h"

enum { HEC_SET_NAME = 64 };

// Costs of one layer of a set, on one device.
struct hec_set_cost {
    char name[HEC_SET_NAME];
    int32_t experts;
    int64_t layers;          // At least 1.
    int64_t rows, wave_rows; // (token, expert) pairs of one device; room of a wave.
    int64_t row_bytes;       // A row that is sent.
    int32_t picks;           // Experts that a token has.
    bool once;               // Its row crosses once to a node (parallel.rows = node).
    int64_t chunk_bytes;     // A chunk's parameters as replicas hold them.
    int64_t grad_bytes;      // A chunk's gradient.
    int64_t grad_way_bytes;  // The same on its way to the owner.
    int64_t owner_bytes;     // A chunk on its owner: parameters, gradient, optimizer states.
    double row_forward_us, row_backward_us; // Computing a row.
    // Computation besides experts: between the start of the layer's parameters and their await;
    // behind reduce; between the start of a re-materialization and its await.
    double window_us, reduce_window_us, rematerialize_window_us;
};

// Windows of layers but the first, where they have slots of their own: parameters are prefetched while
// the experts before compute, gradients may travel until those of the layer below have computed.
static inline double hec_early_window_us(const struct hec_set_cost *cost) {
    const double experts = cost->layers > 1 ? (double)cost->rows * cost->row_forward_us : 0;
    return cost->window_us + experts;
}

static inline double hec_late_window_us(const struct hec_set_cost *cost) {
    const double experts = cost->layers > 1 ? (double)cost->rows * cost->row_backward_us : 0;
    return cost->reduce_window_us + experts;
}

// How many of `bytes` each fit over the network of a node, or of the only node, in a time.
int64_t hec_fitting(const struct hec_machine *machine, double us, int64_t bytes);

// Sets the prices that a program's planner gets, one for all sets: windows hide as much as those of the set that hides
// least, and prices, in picoseconds, are those of the dearest set.
void hec_set_prices(struct hpl_movement *movement, const struct hec_machine *machine,
                    const struct hec_set_cost *set, int count);

struct hec_costs {
    struct hec_machine machine;
    int count;
    struct hec_set_cost set[HEC_SITES_MAX];
};

// The layers of all sets together.
static inline int64_t hec_layers_of(const struct hec_costs *costs) {
    int64_t layers = 0;
    for (int i = 0; i < costs->count; i++) layers += costs->set[i].layers;
    return layers;
}

// False after a report: experts are not distributed.
bool hec_costs_of(MlirOperation module, struct hec_costs *costs);

#endif
