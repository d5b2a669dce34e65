// families.h: drawn loads of ten shapes, from the usual one to those that make planning hard.
#ifndef HECATE_RUNTIME_PLAN_LOADS_FAMILIES_H
#define HECATE_RUNTIME_PLAN_LOADS_FAMILIES_H

#include <stdbool.h>
#include <stdint.h>

enum { LOADS_FAMILIES = 10 };

struct loads_shape {
    int32_t nodes, size; // Devices of a node.
    int32_t experts;     // Expert e belongs to device e * devices / experts.
    uint32_t rows;       // A device has so many in a microbatch; twice as many where half idle.
    double skew;         // Exponent of Zipf's law; "one hot": the part of one is skew / (skew + 2).
    uint64_t seed;
};

// The family's name, one or two words.
const char *loads_family_name(int32_t family);

// Draws two microbatches, each [devices][experts]: `before`, from which a plan is made, and `after`, which it meets.
// The same arguments give the same rows. False: memory ran out.
bool loads_family_draw(int32_t family, const struct loads_shape *shape, uint32_t *before,
                       uint32_t *after);

#endif
