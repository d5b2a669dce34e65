// families.c: popularities by Zipf's law, and ten ways in which devices depart from it.
#include "runtime/plan/loads/families.h"

#include "runtime/plan/loads/draw.h"

#include <math.h>
#include <stdlib.h>

enum family {
    DRAWN,      // One order of experts, and small preferences of devices.
    BIASED,     // Devices with strong preferences of their own.
    DRIFTING,   // Popularity moves between the two microbatches.
    BY_NODE,    // Each node has an order of its own.
    ONE_HOT,    // One expert beside equal ones.
    HOT_OWNERS, // The popular experts belong to the same devices.
    EQUAL,      // All devices alike and without noise: nothing but ties.
    SPARSE,     // A device asks for a few experts alone.
    IDLE,       // Every other device has no rows.
    FOREIGN,    // A node asks for experts of other nodes alone.
};

static const char *const names[LOADS_FAMILIES] = {
    [DRAWN] = "drawn",     [BIASED] = "biased",   [DRIFTING] = "drifting",
    [BY_NODE] = "by node", [ONE_HOT] = "one hot", [HOT_OWNERS] = "hot owners",
    [EQUAL] = "equal",     [SPARSE] = "sparse",   [IDLE] = "idle",
    [FOREIGN] = "foreign"};

const char *loads_family_name(int32_t family) {
    return names[family];
}

struct drawing {
    enum family family;
    const struct loads_shape *shape;
    int32_t *rank;  // [experts] place in the order of popularity
    double *weight; // [experts] scratch
    double *step;   // [experts] of the drift
    uint64_t state;
};

// Fisher and Yates' shuffle; owners of popular experts stay neighbours where that is wanted.
static void order_experts(struct drawing *d) {
    for (int32_t e = 0; e < d->shape->experts; e++) d->rank[e] = e;
    if (d->family == HOT_OWNERS) return;
    for (int32_t e = d->shape->experts - 1; e > 0; e--) {
        const int32_t other = (int32_t)(draw(&d->state) % (uint64_t)(e + 1));
        const int32_t held = d->rank[e];
        d->rank[e] = d->rank[other];
        d->rank[other] = held;
    }
}

static bool asks(struct drawing *d, int32_t device, int32_t expert) {
    const struct loads_shape *shape = d->shape;
    if (d->family == FOREIGN && shape->nodes > 1) {
        const int32_t owner =
            (int32_t)((int64_t)expert * shape->nodes * shape->size / shape->experts);
        return owner / shape->size != device / shape->size;
    }
    if (d->family == SPARSE) { // The expert of its own number, and one in eight.
        uint64_t seed = shape->seed ^ ((uint64_t)device << 32 | (uint32_t)expert);
        return expert == device % shape->experts || draw(&seed) % 8 == 0;
    }
    return true;
}

static void weigh(struct drawing *d, int32_t device, bool after) {
    const struct loads_shape *shape = d->shape;
    uint64_t own = shape->seed * 7919 + (uint64_t)device; // The same in both microbatches.
    const double spread = d->family == BIASED ? 1 : d->family == EQUAL ? 0 : 0.1;
    for (int32_t e = 0; e < shape->experts; e++) {
        double level = -shape->skew * log(d->rank[e] + 1.0);
        if (d->family == ONE_HOT)
            level = d->rank[e] > 0 || shape->experts < 2
                        ? 0
                        : log((shape->experts - 1) * fmax(shape->skew, 1e-3) / 2);
        if (d->family == DRIFTING && after) level += d->step[e];
        level += spread * draw_normal(&own);
        d->weight[e] = asks(d, device, e) ? exp(level) : 0;
    }
}

// Rows near rows * probability that sum to `rows` exactly.
static void draw_device(struct drawing *d, uint32_t rows, uint32_t *counts) {
    double mass = 0;
    uint32_t left = rows;
    for (int32_t e = 0; e < d->shape->experts; e++) mass += d->weight[e];
    for (int32_t e = 0; e < d->shape->experts; e++) {
        const double part = mass > 0 ? fmin(1, d->weight[e] / mass) : 1;
        const double mean = left * part;
        const double noise =
            d->family == EQUAL ? 0 : sqrt(mean * (1 - part)) * draw_normal(&d->state);
        counts[e] = (uint32_t)fmin(fmax(round(mean + noise), 0), left);
        left -= counts[e];
        mass = fmax(mass - d->weight[e], 0);
    }
    counts[d->rank[0]] += left;
}

static void draw_microbatch(struct drawing *d, bool after, uint32_t *rows) {
    const struct loads_shape *shape = d->shape;
    for (int32_t device = 0; device < shape->nodes * shape->size; device++) {
        if (d->family == BY_NODE && device % shape->size == 0) {
            const uint64_t held = d->state;
            d->state = shape->seed * 104729 + (uint64_t)device; // The same in both microbatches.
            order_experts(d);
            d->state = held;
        }
        const uint32_t mine = d->family != IDLE ? shape->rows : device % 2 ? 0 : 2 * shape->rows;
        weigh(d, device, after);
        draw_device(d, mine, rows + (int64_t)device * shape->experts);
    }
}

bool loads_family_draw(int32_t family, const struct loads_shape *shape, uint32_t *before,
                       uint32_t *after) {
    const size_t experts = (size_t)shape->experts;
    struct drawing d = {.family = (enum family)family,
                        .shape = shape,
                        .rank = calloc(experts, sizeof *d.rank),
                        .weight = calloc(experts, sizeof *d.weight),
                        .step = calloc(experts, sizeof *d.step),
                        .state = shape->seed * 1000003 + (uint64_t)family};
    const bool taken = d.rank && d.weight && d.step;
    if (taken) {
        order_experts(&d);
        for (size_t e = 0; e < experts; e++) d.step[e] = 0.3 * draw_normal(&d.state);
        draw_microbatch(&d, false, before);
        draw_microbatch(&d, true, after);
    }
    free(d.rank);
    free(d.weight);
    free(d.step);
    return taken;
}
