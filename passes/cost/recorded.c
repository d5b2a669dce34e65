// Loads from a file, regrouped to the devices of the program; or drawn.
#include "passes/cost/recorded.h"

#include <stdlib.h>
#include <string.h>

#include "ir/accessors.h"
#include "runtime/plan/loads/synthesize.h"

const double hec_assumed_skew = 1.2, hec_assumed_drift = 0.05, hec_assumed_bias = 0.2;

// Layers that stand for all, and for how many experts times devices, beyond which planning takes long and a
// second one has to do.
enum { ASSUMED_LAYERS = 4, LARGE_LAYERS = 2, LARGE = 8192, ASSUMED_ROWS = 60000, SEED = 1 };

static int64_t devices_of(const struct hec_setup *setup) {
    return setup->costs.machine.nodes * setup->costs.machine.devices;
}

// ---- of a file

static size_t at(const struct loads *l, size_t iteration, size_t layer, size_t device,
                 size_t microbatch) {
    return (((iteration * l->layers + layer) * l->devices + device) * l->microbatches +
            microbatch) *
           l->experts;
}

// The same rows on `devices` devices: each gets those of several, or an even part of one's.
static bool regroup(struct loads *loads, uint32_t devices) {
    struct loads to = *loads;
    const uint32_t from = loads->devices;
    to.devices = devices;
    to.rows = calloc((size_t)to.iterations * to.layers * devices * to.microbatches * to.experts,
                     sizeof *to.rows);
    if (!to.rows) return false;
    const uint32_t most = from > devices ? from : devices;
    for (uint32_t i = 0; i < to.iterations * to.layers; i++) {
        for (uint32_t part = 0; part < most; part++) { // A part of the finer division.
            const uint32_t source = part / (most / from), target = part / (most / devices);
            const uint32_t parts = most / from, number = part % parts;
            for (uint32_t m = 0; m < to.microbatches; m++) {
                const uint16_t *rows = loads->rows + at(loads, 0, i, source, m);
                uint16_t *sum = to.rows + at(&to, 0, i, target, m);
                for (uint32_t e = 0; e < to.experts; e++) {
                    const uint32_t own = (rows[e] + number) / parts, all = sum[e] + own;
                    sum[e] = (uint16_t)(all > UINT16_MAX ? UINT16_MAX : all);
                }
            }
        }
    }
    loads_free(loads);
    *loads = to;
    return true;
}

static bool check_shape(MlirOperation module, const struct hec_setup *setup,
                        const struct loads *l) {
    int64_t layers = 0;
    for (int i = 0; i < setup->costs.count; i++) {
        const struct hec_set_cost *cost = &setup->costs.set[i];
        layers += cost->layers;
        if (cost->experts == (int32_t)l->experts) continue;
        return hec_ir_error(module, "%s: %u experts, @%s has %d", setup->recorded, l->experts,
                            cost->name, cost->experts);
    }
    const int64_t devices = devices_of(setup);
    if (layers != l->layers) {
        hec_ir_error(module, "%s: %u layers of experts, the program has %" PRId64, setup->recorded,
                     l->layers, layers);
    } else if (l->devices % devices != 0 && devices % l->devices != 0) {
        hec_ir_error(module,
                     "%s: recorded on %u devices, which the program's %" PRId64 " do not divide",
                     setup->recorded, l->devices, devices);
    } else {
        return true;
    }
    return false;
}

static bool read_file(MlirOperation module, struct hec_setup *setup) {
    char why[LOADS_WHY];
    struct loads loads;
    if (!loads_read(&loads, setup->recorded, why)) return hec_ir_error(module, "%s", why);
    setup->loads[0] = loads;
    if (!check_shape(module, setup, &loads)) return false;
    if (loads.devices != devices_of(setup) &&
        !regroup(&setup->loads[0], (uint32_t)devices_of(setup)))
        return hec_ir_error(module, "%s: out of memory", setup->recorded);
    for (int i = 1; i < setup->costs.count; i++) setup->loads[i] = setup->loads[0];
    setup->recorded_times = (int64_t)loads.iterations * loads.microbatches;
    return true;
}

// ---- assumed

static bool draw(struct hec_setup *setup, int set) {
    const struct hec_set_cost *cost = &setup->costs.set[set];
    const int64_t most = cost->experts * devices_of(setup) > LARGE ? LARGE_LAYERS : ASSUMED_LAYERS;
    const struct synthesis wanted = {
        .iterations = (uint32_t)(setup->movement.window < 8 ? setup->movement.window : 8) + 2,
        .layers = (uint32_t)(cost->layers < most ? cost->layers : most),
        .devices = (uint32_t)devices_of(setup),
        .microbatches = 1,
        .experts = (uint32_t)cost->experts,
        .rows = (uint32_t)(cost->rows < ASSUMED_ROWS ? cost->rows : ASSUMED_ROWS),
        .skew = hec_assumed_skew,
        .drift = hec_assumed_drift,
        .bias = hec_assumed_bias,
        .seed = SEED + (uint64_t)set,
    };
    return synthesize(&wanted, &setup->loads[set]);
}

bool hec_recorded_read(MlirOperation module, struct hec_arena *arena, struct hec_setup *setup) {
    const MlirStringRef path = hec_module_recorded_loads(module);
    setup->loads = hec_arena_alloc(arena, (size_t)setup->costs.count, sizeof *setup->loads);
    if (path.length) {
        setup->recorded = hec_arena_copy(arena, path.data, path.length);
        return read_file(module, setup);
    }
    for (int i = 0; i < setup->costs.count && !hec_module_only_placed(module); i++) {
        if (draw(setup, i)) continue;
        return hec_ir_error(module, "out of memory for the loads that are assumed");
    }
    return true;
}

void hec_recorded_free(struct hec_setup *setup) {
    if (!setup->loads) return;
    const int own = setup->recorded ? 1 : setup->costs.count; // One record serves all sets.
    for (int i = 0; i < own; i++) loads_free(&setup->loads[i]);
}

// ---- summed up

int64_t hec_recorded_layer(const struct hec_setup *setup, int set) {
    int64_t layer = 0;
    for (int i = 0; i < set && setup->recorded; i++) layer += setup->costs.set[i].layers;
    return layer;
}

void hec_recorded_totals(const struct hec_setup *setup, int set, int64_t *rows) {
    const struct loads *l = &setup->loads[set];
    const size_t first = (size_t)hec_recorded_layer(setup, set);
    const size_t layers = (size_t)setup->costs.set[set].layers;
    memset(rows, 0, layers * l->experts * sizeof *rows);
    for (size_t i = 0; i < l->iterations; i++) {
        for (size_t layer = 0; layer < layers; layer++) {
            for (size_t k = 0; k < (size_t)l->devices * l->microbatches; k++) {
                const uint16_t *from = l->rows + at(l, i, first + layer, 0, 0) + k * l->experts;
                for (size_t e = 0; e < l->experts; e++) rows[layer * l->experts + e] += from[e];
            }
        }
    }
}

void hec_recorded_mean(const struct hec_setup *setup, int set, int32_t *forecast) {
    const struct loads *l = &setup->loads[set];
    const size_t first = (size_t)hec_recorded_layer(setup, set);
    const size_t layers = (size_t)setup->costs.set[set].layers;
    const int64_t times = (int64_t)l->iterations * l->microbatches;
    for (size_t layer = 0; layer < layers; layer++) {
        for (size_t d = 0; d < l->devices; d++) {
            for (size_t e = 0; e < l->experts; e++) {
                int64_t sum = 0;
                for (size_t i = 0; i < l->iterations; i++) {
                    for (size_t m = 0; m < l->microbatches; m++)
                        sum += l->rows[at(l, i, first + layer, d, m) + e];
                }
                forecast[(layer * l->devices + d) * l->experts + e] =
                    (int32_t)((sum + times / 2) / times);
            }
        }
    }
}
