// synthesize.h: drawn loads, for any number of experts, devices and layers.
#ifndef HECATE_RUNTIME_PLAN_LOADS_SYNTHESIZE_H
#define HECATE_RUNTIME_PLAN_LOADS_SYNTHESIZE_H

#include "runtime/plan/loads/loads.h"

struct synthesis {
    uint32_t iterations, layers, devices, microbatches, experts;
    uint32_t rows; // Rows of each device and microbatch, at most 65,535.
    double skew;   // Exponent of the Zipf law of the experts' popularity; 0 is even.
    double drift;  // Standard deviation of the step that each log popularity takes an iteration.
    double bias;   // Standard deviation of a device's own log preference: data differs by device.
    uint64_t seed;
};

// Draws loads. The same arguments give the same loads. False: memory ran out. Free with loads_free.
bool synthesize(const struct synthesis *wanted, struct loads *loads);

#endif
