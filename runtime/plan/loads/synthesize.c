// synthesize.c: popularity by Zipf's law in a random order, drifting as a random walk of its
// logarithm; each device draws its rows from it, with a preference of its own.
#include "runtime/plan/loads/synthesize.h"

#include "runtime/plan/loads/draw.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct layer {
    double *log_popularity; // [experts]
    double *bias;           // [devices][experts]
    double *weight;         // [experts] scratch
};

static void begin_layer(struct layer *layer, const struct synthesis *wanted, uint64_t *state) {
    for (uint32_t e = 0; e < wanted->experts; e++) {
        layer->log_popularity[e] = -wanted->skew * log(e + 1.0);
    }
    for (uint32_t e = wanted->experts - 1; e > 0; e--) { // Fisher and Yates' shuffle.
        const uint32_t other = (uint32_t)(draw(state) % (e + 1));
        const double held = layer->log_popularity[e];
        layer->log_popularity[e] = layer->log_popularity[other];
        layer->log_popularity[other] = held;
    }
    for (size_t i = 0; i < (size_t)wanted->devices * wanted->experts; i++) {
        layer->bias[i] = wanted->bias * draw_normal(state);
    }
}

// Counts near rows * probability with the spread of a multinomial, summing to rows exactly.
static void draw_device(const struct layer *layer, const struct synthesis *wanted, uint32_t device,
                        uint16_t *counts, uint64_t *state) {
    double sum = 0;
    for (uint32_t e = 0; e < wanted->experts; e++) {
        const double bias = layer->bias[(size_t)device * wanted->experts + e];
        sum += layer->weight[e] = exp(layer->log_popularity[e] + bias);
    }
    // Expert by expert, from what is left: a normal deviate in place of the binomial one.
    double mass = sum;
    uint32_t left = wanted->rows;
    for (uint32_t e = 0; e < wanted->experts; e++) {
        const double part = e + 1 == wanted->experts ? 1 : fmin(1, layer->weight[e] / mass);
        const double mean = left * part;
        const double value = round(mean + sqrt(mean * (1 - part)) * draw_normal(state));
        const uint32_t count = (uint32_t)fmin(fmax(value, 0), left);
        counts[e] = (uint16_t)(e + 1 == wanted->experts ? left : count);
        left -= counts[e];
        mass = fmax(mass - layer->weight[e], 1e-300);
    }
}

static void draw_layer(const struct synthesis *wanted, const struct loads *loads, uint32_t number,
                       struct layer *layer) {
    uint64_t state = wanted->seed * 1000003 + number;
    begin_layer(layer, wanted, &state);
    const uint32_t experts = wanted->experts, per = wanted->microbatches;
    for (uint32_t i = 0; i < wanted->iterations; i++) {
        for (uint32_t e = 0; e < experts; e++) {
            layer->log_popularity[e] += wanted->drift * draw_normal(&state);
        }
        for (uint32_t d = 0; d < wanted->devices; d++) {
            for (uint32_t m = 0; m < per; m++) {
                const size_t at =
                    (((size_t)i * wanted->layers + number) * wanted->devices + d) * per + m;
                draw_device(layer, wanted, d, loads->rows + at * experts, &state);
            }
        }
    }
}

bool synthesize(const struct synthesis *wanted, struct loads *loads) {
    *loads = (struct loads){wanted->iterations,   wanted->layers,  wanted->devices,
                            wanted->microbatches, wanted->experts, NULL};
    const size_t cells = (size_t)wanted->devices * wanted->experts;
    const size_t count = cells * wanted->iterations * wanted->layers * wanted->microbatches;
    struct layer layer = {
        .log_popularity = malloc(wanted->experts * sizeof(double)),
        .bias = malloc(cells * sizeof(double)),
        .weight = malloc(wanted->experts * sizeof(double)),
    };
    loads->rows = calloc(count, sizeof *loads->rows);
    const bool taken = layer.log_popularity && layer.bias && layer.weight && loads->rows;
    for (uint32_t l = 0; taken && l < wanted->layers; l++) draw_layer(wanted, loads, l, &layer);
    if (!taken) loads_free(loads);
    free(layer.log_popularity);
    free(layer.bias);
    free(layer.weight);
    return taken;
}
