// draw.h: random numbers for drawn loads, the same in every run (inside the loads only).
#ifndef HECATE_RUNTIME_PLAN_LOADS_DRAW_H
#define HECATE_RUNTIME_PLAN_LOADS_DRAW_H

#include <math.h>
#include <stdint.h>

// splitmix64 (Steele, Lea, Flood 2014): one addition and a hash, any seed will do.
static inline uint64_t draw(uint64_t *state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

static inline double draw_unit(uint64_t *state) {
    return ((double)(draw(state) >> 11) + 0.5) * 0x1p-53;
}

// Box and Muller's normal deviate.
static inline double draw_normal(uint64_t *state) {
    const double radius = sqrt(-2 * log(draw_unit(state)));
    return radius * cos(6.283185307179586 * draw_unit(state));
}

#endif
