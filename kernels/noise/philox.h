// Philox4x32-10: a counter-based generator. The same key and counter give the same four words
// everywhere, so a random number depends on its purpose and never on rank, owner or order.
//
// Source: Salmon, Moraes, Dror, Shaw 2011, "Parallel random numbers: as easy as 1, 2, 3" (SC11),
// section 4.3.
#ifndef HECATE_KERNELS_NOISE_PHILOX_H
#define HECATE_KERNELS_NOISE_PHILOX_H

#include "kernels/scalar.h"

struct hk_philox {
    uint32_t word[4];
};

// Ten rounds over `counter` under the key (key0, key1). Pure.
HK_SCALAR struct hk_philox hk_philox4x32(struct hk_philox counter, uint32_t key0, uint32_t key1) {
    enum { rounds = 10 };
    const uint32_t multiplier0 = 0xD2511F53, multiplier1 = 0xCD9E8D57;
    const uint32_t weyl0 = 0x9E3779B9, weyl1 = 0xBB67AE85; // Added to the key between rounds.
    for (int round = 0; round < rounds; round++) {
        const uint64_t product0 = (uint64_t)multiplier0 * counter.word[0];
        const uint64_t product1 = (uint64_t)multiplier1 * counter.word[2];
        counter = (struct hk_philox){{
            (uint32_t)(product1 >> 32) ^ counter.word[1] ^ key0,
            (uint32_t)product1,
            (uint32_t)(product0 >> 32) ^ counter.word[3] ^ key1,
            (uint32_t)product0,
        }};
        key0 += weyl0;
        key1 += weyl1;
    }
    return counter;
}

#endif
