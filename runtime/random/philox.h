// Philox4x32-10: a counter-based generator. The same key and counter give the same four words
// everywhere, so a random number depends on what it is for and never on rank, owner or order.
//
// Source: Salmon, Moraes, Dror, Shaw 2011, "Parallel random numbers: as easy as 1, 2, 3" (SC11).
#ifndef HECATE_RUNTIME_RANDOM_PHILOX_H
#define HECATE_RUNTIME_RANDOM_PHILOX_H

#include <stdint.h>

struct hrt_philox {
    uint32_t word[4];
};

// Ten rounds over `counter` under the key (key0, key1). Pure.
struct hrt_philox hrt_philox4x32(struct hrt_philox counter, uint32_t key0, uint32_t key1);

#endif
